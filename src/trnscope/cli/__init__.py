"""The ``trnscope`` command: each command calls the library and shows its result."""
