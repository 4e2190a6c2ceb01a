"""Find out why a PyTorch model is slow, prove the cause, and prove the fix."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from trnscope.api import open, profile

__all__ = ["__version__", "open", "profile"]


def __getattr__(name: str) -> Any:
    if name in {"open", "profile"}:
        from trnscope import api

        return getattr(api, name)
    raise AttributeError(f"module 'trnscope' has no attribute {name!r}")
