"""Scripts that make what is committed but not written by hand."""
