"""Numbers for people: times, sizes and shares with their units."""

from __future__ import annotations

_TIME_STEPS = ((1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "µs"))
_SI_STEPS = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_SIZE_STEPS = ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))


def format_ns(ns: int | None) -> str:
    """``1_234_567`` → ``1.235 ms``; absent → ``-``."""
    if ns is None:
        return "-"
    for step, unit in _TIME_STEPS:
        if abs(ns) >= step:
            return f"{ns / step:.3f} {unit}"
    return f"{ns} ns"


def format_bytes(size: int | None) -> str:
    """Binary units, labelled as such: ``69793218560`` → ``65.00 GiB``."""
    if size is None:
        return "-"
    for step, unit in _SIZE_STEPS:
        if abs(size) >= step:
            return f"{size / step:.2f} {unit}"
    return f"{size} B"


def format_rate(value: float | None, unit: str) -> str:
    """Decimal steps of three digits: ``611.3e12, "FLOP/s"`` → ``611 TFLOP/s``; absent → ``-``."""
    if value is None:
        return "-"
    for step, prefix in _SI_STEPS:
        if abs(value) >= step:
            return f"{value / step:.3g} {prefix}{unit}"
    return f"{value:.3g} {unit}"


def format_ratio(ratio: float | None) -> str:
    """A ratio 0-1 as a percentage; absent → ``-``."""
    return "-" if ratio is None else f"{ratio * 100:.1f} %"


def ratio(part: int, whole: int) -> float | None:
    """``part / whole``; absent where there is no whole to compare with."""
    return None if whole == 0 else part / whole
