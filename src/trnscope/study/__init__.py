"""Studies: one question about performance, measured several ways side by side."""
