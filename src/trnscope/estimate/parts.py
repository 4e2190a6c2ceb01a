"""Splits a step into parts by what held it up; they add up to the step exactly."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from trnscope.sim.cost.usage import binding_of
from trnscope.sim.signature import ExecutionCost

HOST = "host"
"""The core idles: its next program has not been launched yet."""
PROGRAM = "program"
"""Fixed time of every program, and loading it."""
COPY = "copy"
"""Between host and device."""
COLLECTIVE = "collective"
MEMORY = "memory"
"""HBM and DMA."""


@dataclass(frozen=True)
class Span:
    """A piece of device time and what bound it."""

    start_ns: int
    end_ns: int
    part: str


def execution_spans(
    start_ns: int, end_ns: int, cost: ExecutionCost, fixed_ns: int
) -> tuple[Span, ...]:
    """An execution: first what every program takes (``fixed_ns``), then its work."""
    begun = min(end_ns, start_ns + fixed_ns)
    work = replace(cost, host_ns=0, device_ns=end_ns - begun)
    if work.device_ns == 0:
        return (Span(start_ns, begun, PROGRAM),)
    bound = binding_of(work)
    return (
        Span(start_ns, begun, PROGRAM),
        Span(begun, end_ns, MEMORY if bound == "dma" else bound),
    )


def split(spans: Iterable[Span], start_ns: int, end_ns: int, paused_ns: int = 0) -> dict[str, int]:
    """Time of each part between the two; what no span covers is the host's.

    ``paused_ns``: time in it that is not to be counted (the compiler's), while the device idled.
    Where spans overlap (streams), the time goes to the one that began first.
    """
    parts: dict[str, int] = {}
    covered = start_ns
    for span in sorted(spans, key=lambda one: (one.start_ns, one.end_ns)):
        begin, end = max(span.start_ns, covered), min(span.end_ns, end_ns)
        if end > begin:
            parts[span.part] = parts.get(span.part, 0) + end - begin
            covered = end
    idle_ns = end_ns - start_ns - sum(parts.values()) - paused_ns
    return {HOST: max(0, idle_ns), **parts}


def take_off(parts: dict[str, int], shares: dict[str, int], amount_ns: int) -> dict[str, int]:
    """The parts with ``amount_ns`` less in all, in proportion to ``shares`` where that is there."""
    left = dict(parts)
    whole = sum(shares.values())
    rest = amount_ns
    for part, share in shares.items():
        less = min(left.get(part, 0), amount_ns * share // whole) if whole else 0
        left[part] = left.get(part, 0) - less
        rest -= less
    for part in sorted(left, key=lambda name: left[name], reverse=True):
        less = min(left[part], rest)
        left[part] -= less
        rest -= less
    return left
