"""From an ATen op to the engine instructions that it costs: one file an op family."""
