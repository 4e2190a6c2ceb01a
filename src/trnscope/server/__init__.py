"""The Explorer's server: one profile, one local port, one reader who holds the token."""
