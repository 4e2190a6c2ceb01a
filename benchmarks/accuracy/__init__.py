"""The cost model against published measurements: see ``benchmarks/sim_accuracy.py``."""
