"""Runs a plain command line (a reading command, paths, ``--json``) without loading the parser.

Loading the parser takes longer than most answers. What is not plain is left to it.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Sequence
from pathlib import Path

READING_COMMANDS = (
    "summary",
    "breakdown",
    "steps",
    "ops",
    "kernels",
    "overlap",
    "launch",
    "memory",
    "roofline",
    "health",
)
"""Commands that need nothing but paths."""

_JSON = "--json"
_BLAS_THREADS = "OPENBLAS_NUM_THREADS"


def plain_command(args: Sequence[str]) -> Callable[[], object] | None:
    """What to call for this command line; absent where only the parser can tell."""
    if not args or args[0] not in READING_COMMANDS:
        return None
    paths = [Path(arg) for arg in args[1:] if arg != _JSON]
    if not paths or any(arg.startswith("-") and arg != _JSON for arg in args):
        return None

    def call() -> object:
        _load_numpy_without_threads()
        module = importlib.import_module(f"trnscope.cli.commands.{args[0]}")
        command: Callable[..., object] = getattr(module, args[0])
        return command(paths, as_json=_JSON in args)

    return call


def _load_numpy_without_threads() -> None:
    """No analysis multiplies matrices, so the threads for that are never started.

    The variable is read once, at import, and must not reach the processes that a program starts.
    """
    if _BLAS_THREADS in os.environ:
        return
    os.environ[_BLAS_THREADS] = "1"
    try:
        import numpy  # noqa: F401
    finally:
        del os.environ[_BLAS_THREADS]
