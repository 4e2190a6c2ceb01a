"""Benchmarks: a trace generator, readers to compare with, and the run that measures all."""
