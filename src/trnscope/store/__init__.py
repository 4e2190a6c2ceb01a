"""One trace on disk: mapped Arrow tables, written once and then only read."""
