"""Three ways to compute RMSNorm: what the device is asked to do, and what it costs."""
