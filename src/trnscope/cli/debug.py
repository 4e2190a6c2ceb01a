"""Whether errors are shown with their traceback."""

from __future__ import annotations

import os

DEBUG_VARIABLE = "TRNSCOPE_DEBUG"


def set_debug(value: bool) -> None:
    """Ask for tracebacks from here on."""
    # In the environment, so that a process started to record a script shows its errors too.
    if value:
        os.environ[DEBUG_VARIABLE] = "1"


def debug_wanted() -> bool:
    """Whether errors are to be shown with their traceback."""
    return bool(os.environ.get(DEBUG_VARIABLE))
