"""One file a question: a function of a profile that returns a frozen result."""
