"""Runs a function later, on the main thread, between two bytecodes of whatever it is doing.

A profiler has to start and stop on the thread that it watches, and a script that never calls
into torch's hooks gives no other moment for it. Python's own signal handlers run in this way.
"""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Callable
from types import FrameType

_Pending = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p)
_waiting: dict[int, object] = {}
"""Callbacks the interpreter has been handed; it keeps no reference of its own."""


def after_seconds_in_main_thread(seconds: float, function: Callable[[], None]) -> None:
    """Call ``function`` on the main thread in ``seconds``, or as soon after as it is free."""
    timer = threading.Timer(seconds, _hand_over, (function,))
    timer.daemon = True
    timer.name = "trnscope-timer"
    timer.start()


def is_importing() -> bool:
    """Whether the code that was interrupted is inside an import, and its modules half made."""
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


def _hand_over(function: Callable[[], None]) -> None:
    def call(_unused: object) -> int:
        # The object that is running now must outlive this call: keep it one round longer.
        _waiting[-1] = _waiting.pop(key)
        function()
        return 0

    pending = _Pending(call)
    key = id(pending)
    _waiting[key] = pending
    if ctypes.pythonapi.Py_AddPendingCall(pending, None) != 0:
        # The interpreter's short queue is full; it drains within moments.
        del _waiting[key]
        after_seconds_in_main_thread(0.1, function)
