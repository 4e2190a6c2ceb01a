"""Whether two profiles were recorded of the same thing: devices, ranks, clocks, shapes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from trnscope.analysis.ops import ops
from trnscope.errors import TrnscopeError
from trnscope.store.profile import Profile

SHAPES_SHOWN = 3


@dataclass(frozen=True)
class Difference:
    """One thing that is not the same on both sides."""

    what: str
    """Stable: ``devices``, ``ranks``, ``clock``, ``writer``, ``shapes`` or ``complete``."""
    before: str
    after: str

    def to_json(self) -> dict[str, object]:
        """Its fields."""
        return dict(vars(self))


def differences(before: Profile, after: Profile) -> tuple[Difference, ...]:
    """What differs besides the times."""
    found = [
        Difference(what, ask(before), ask(after))
        for what, ask in _QUESTIONS.items()
        if ask(before) != ask(after)
    ]
    shapes = _shapes(before, after)
    return tuple(found if shapes is None else [*found, shapes])


def _devices(profile: Profile) -> str:
    names = {
        track.device.name or track.device.kind.name.lower()
        for trace in profile.traces
        for track in trace.tracks
        if track.device is not None
    }
    return ", ".join(sorted(names)) or "the host alone"


def _ranks(profile: Profile) -> str:
    return str(len(profile.traces))


def _clock(profile: Profile) -> str:
    model = profile.simulated_by
    return "measured" if model is None else f"simulated by {model}"


def _writer(profile: Profile) -> str:
    return ", ".join(sorted({str(trace.source.format) for trace in profile.traces}))


def _complete(profile: Profile) -> str:
    whole = all(trace.health.complete for trace in profile.traces)
    return "complete" if whole else "incomplete"


_QUESTIONS: dict[str, Callable[[Profile], str]] = {
    "devices": _devices,
    "ranks": _ranks,
    "clock": _clock,
    "writer": _writer,
    "complete": _complete,
}


def _shapes(before: Profile, after: Profile) -> Difference | None:
    """Ops that ran on both sides, and never with the same shapes."""
    sides = (_shapes_by_name(before), _shapes_by_name(after))
    if sides[0] is None or sides[1] is None:
        return None
    changed = [
        name
        for name, shapes in sides[0].items()
        if name in sides[1] and shapes.isdisjoint(sides[1][name])
    ]
    if not changed:
        return None
    return Difference("shapes", *(_text(side, changed[:SHAPES_SHOWN]) for side in sides))


def _shapes_by_name(profile: Profile) -> dict[str, set[str]] | None:
    try:
        table = ops(profile, "shape")
    except TrnscopeError:
        return None
    found: dict[str, set[str]] = {}
    for row in table.rows:
        if row.input_shapes is not None and row.input_shapes not in ("", "[]"):
            found.setdefault(row.name, set()).add(row.input_shapes)
    return found


def _text(side: dict[str, set[str]] | None, names: list[str]) -> str:
    return "; ".join(f"{name} {min((side or {})[name])}" for name in names)
