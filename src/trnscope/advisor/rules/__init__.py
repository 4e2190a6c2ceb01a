"""The rules, one file each; the registry lists them."""
