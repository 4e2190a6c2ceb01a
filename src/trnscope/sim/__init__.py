"""A Trainium without the chip: the device "neuron" of PyTorch, its profiler and its cost model."""
