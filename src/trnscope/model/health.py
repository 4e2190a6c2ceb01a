"""How complete and how trustworthy a trace is."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class HealthWarning:
    """One kind of trouble found in one file.

    ``code`` is stable and kebab-case; ``message`` is one line for a person and names the
    position of the first occurrence; ``count`` is how often it happened.
    """

    code: str
    message: str
    count: int


@dataclass(frozen=True)
class Health:
    """What was read and what was not.

    ``complete`` is false whenever something that the file should hold is missing: it was
    cut off, events were unreadable, or times were invalid.
    """

    complete: bool
    num_events_read: int
    num_events_repaired: int
    num_events_unreadable: int
    warnings: tuple[HealthWarning, ...] = ()
