"""The faults, one file a family; importing this package fills the list."""

from __future__ import annotations

from benchmarks.doctor.faults import (
    compiling,
    formats,
    host,
    loading,
    memory,
    neuron,
    operators,
    ranks,
)

__all__ = ["compiling", "formats", "host", "loading", "memory", "neuron", "operators", "ranks"]
