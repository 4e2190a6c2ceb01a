"""Writes simulated profiles as the Parquet tables that Neuron Explorer writes for real ones."""
