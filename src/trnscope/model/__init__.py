"""What a profile is made of, whatever tool wrote it."""
