"""The profile of a simulated device: what was recorded in virtual time, and its files."""
