"""The API of TorchNeuron on the simulated device: ``torch_neuronx`` and its profiling.

Names, defaults and folders follow the vendor's documentation of 2026; where the real package is
installed, it is used and nothing of this is.
"""
