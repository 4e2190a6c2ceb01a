"""The errors of the stand-in API: one line each, and a ValueError or RuntimeError to a script."""

from __future__ import annotations

from trnscope.errors import CaptureError, UsageError


class ProfileArgumentError(UsageError, ValueError):
    """An argument of NeuronConfig or NeuronProfiler that cannot be honoured."""


class ProfileStateError(CaptureError, RuntimeError):
    """Started twice, stopped without a start, or nothing recorded."""
