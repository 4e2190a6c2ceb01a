"""Peaks and constants of hardware as data files, each number with its source."""
