"""Numbers in the sentences of findings."""

from __future__ import annotations

_STEPS = ((1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "µs"))


def percent(share: float) -> str:
    """``0.583`` → ``58 %``."""
    return f"{100 * share:.0f} %"


def about_ns(ns: int) -> str:
    """Three digits are all that an estimate carries: ``254_930_000`` → ``255 ms``."""
    for step, unit in _STEPS:
        if ns >= step:
            return f"{_three_digits(ns / step)} {unit}"
    return f"{ns} ns"


def _three_digits(value: float) -> str:
    if value >= 100:
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"
