"""``torch_neuronx.profiling`` on the simulated device."""

from __future__ import annotations

from trnscope.sim.neuronx.config import NeuronConfig, ProfileMode
from trnscope.sim.neuronx.profiler import NeuronProfiler

__all__ = ["NeuronConfig", "NeuronProfiler", "ProfileMode"]
