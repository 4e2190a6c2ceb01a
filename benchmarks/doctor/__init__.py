"""How often the doctor is right: programs with a known fault, and their healthy twin."""
