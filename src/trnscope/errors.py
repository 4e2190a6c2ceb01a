"""Errors that a user can act on; the command line prints each as one line."""

from __future__ import annotations

from pathlib import Path


class TrnscopeError(Exception):
    """Base of every expected failure. ``hint`` says what to do about it."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return self.message if self.hint is None else f"{self.message}; {self.hint}"


class UsageError(TrnscopeError):
    """The call itself cannot be carried out as asked (a missing file, a bad option value)."""


class TraceFormatError(TrnscopeError):
    """A file is not a trace that trnscope can read."""

    def __init__(
        self, path: Path, problem: str, *, offset: int | None = None, hint: str | None = None
    ) -> None:
        where = f"{path}" if offset is None else f"{path} (byte {offset})"
        super().__init__(f"{where}: {problem}", hint)
        self.path = path
        self.offset = offset


class CaptureError(TrnscopeError):
    """A profile could not be recorded."""


class UnknownHardwareError(TrnscopeError):
    """No sourced figure exists for this device; none is borrowed from another one."""
