"""One slice for the page: where it is, what it is called, and what it has to do with others."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from threading import Lock

import numpy as np

from trnscope.analysis.time_axis import TimeAxis
from trnscope.analysis.window import KIND_WORDS
from trnscope.errors import TraceFormatError, UsageError
from trnscope.model.kinds import SliceKind
from trnscope.server.tracks import group_name, lane_bases, track_name
from trnscope.store.profile import Profile
from trnscope.store.reader import Trace
from trnscope.store.tables import U32

MAX_LINKS = 200
"""Links of one slice that are listed; how many there are is always said."""


@dataclass(frozen=True)
class SliceRef:
    """One slice, enough to list it and to draw an arrow to it."""

    source: int
    slice: int
    name: str
    kind: str
    at_ns: int
    """Start on the time axis."""
    duration_ns: int
    lane: int
    """Number over all traces."""

    def to_json(self) -> dict[str, object]:
        """Its fields."""
        return dict(vars(self))


@dataclass(frozen=True)
class Link:
    """A directed link: from cause to effect."""

    relation: str
    """``launch`` (runtime call to device work), ``op`` (op to runtime call) or the flow's own
    category."""
    cause: SliceRef
    effect: SliceRef

    def to_json(self) -> dict[str, object]:
        """Its fields."""
        return {
            "relation": self.relation,
            "cause": self.cause.to_json(),
            "effect": self.effect.to_json(),
        }


@dataclass(frozen=True)
class SliceDetails:
    """All that is known of one slice."""

    slice: SliceRef
    start_ns: int
    """As the file has it."""
    self_ns: int
    track: str
    category: str
    args: str | None
    """JSON text; null where there are none or they cannot be read."""
    args_problem: str | None
    parents: tuple[SliceRef, ...]
    """The nearest first."""
    previous: SliceRef | None
    """Its neighbours in the lane."""
    next: SliceRef | None
    num_links: int
    links: tuple[Link, ...]

    def to_json(self) -> dict[str, object]:
        """The document of the details panel."""
        return {
            "schema": 1,
            "slice": self.slice.to_json(),
            "start_ns": self.start_ns,
            "self_ns": self.self_ns,
            "track": self.track,
            "category": self.category,
            "args": self.args,
            "args_problem": self.args_problem,
            "parents": [parent.to_json() for parent in self.parents],
            "previous": None if self.previous is None else self.previous.to_json(),
            "next": None if self.next is None else self.next.to_json(),
            "num_links": self.num_links,
            "links": [link.to_json() for link in self.links],
        }


class SliceFinder:
    """Describes slices of a profile; may be used from any thread."""

    def __init__(self, profile: Profile, axis: TimeAxis) -> None:
        self._traces = profile.traces
        self._zeros_ns = axis.zeros_ns
        self._bases = lane_bases(profile).tolist()
        self._args_lock = Lock()

    def trace(self, source: int, slice_id: int) -> Trace:
        """The trace of a slice; raises :class:`UsageError` for one that is not there."""
        if not 0 <= source < len(self._traces) or not 0 <= slice_id < len(
            self._traces[source].slices
        ):
            raise UsageError(f"there is no slice {slice_id} in source {source}")
        return self._traces[source]

    def ref(self, source: int, slice_id: int) -> SliceRef:
        """One slice in short."""
        trace = self._traces[source]
        s, lanes = trace.slices, trace.lanes
        lane = int(np.searchsorted(lanes.first, slice_id, side="right")) - 1
        return SliceRef(
            source=source,
            slice=int(slice_id),
            name=trace.strings[int(s.name[slice_id])],
            kind=KIND_WORDS[SliceKind(s.kind[slice_id])],
            at_ns=int(s.start_ns[slice_id]) - self._zeros_ns[source],
            duration_ns=int(s.dur_ns[slice_id]),
            lane=self._bases[source] + lane,
        )

    def details(self, source: int, slice_id: int) -> SliceDetails:
        """All about one slice; raises :class:`UsageError` for one that is not there."""
        trace = self.trace(source, slice_id)
        s = trace.slices
        track = trace.tracks[int(s.track[slice_id])]
        args, problem = self._args(trace, slice_id)
        pairs = list(dict.fromkeys(_links(trace, slice_id)))
        known = {(cause, effect) for _, cause, effect in pairs}
        pairs += [flow for flow in _flows(trace, slice_id) if flow[1:] not in known]
        return SliceDetails(
            slice=self.ref(source, slice_id),
            start_ns=int(s.start_ns[slice_id]),
            self_ns=int(s.self_ns[slice_id]),
            track=f"{group_name(track)} › {track_name(track)}",
            category=trace.categories[int(s.category[slice_id])],
            args=args,
            args_problem=problem,
            parents=tuple(self.ref(source, parent) for parent in _parents(trace, slice_id)),
            previous=self._neighbour(source, slice_id, -1),
            next=self._neighbour(source, slice_id, 1),
            num_links=len(pairs),
            links=tuple(
                Link(relation, self.ref(source, cause), self.ref(source, effect))
                for relation, cause, effect in pairs[:MAX_LINKS]
            ),
        )

    def _neighbour(self, source: int, slice_id: int, step: int) -> SliceRef | None:
        slices = self._traces[source].slices
        other = slice_id + step
        if not 0 <= other < len(slices):
            return None
        same = slices.track[other] == slices.track[slice_id]
        if not same or slices.depth[other] != slices.depth[slice_id]:
            return None
        return self.ref(source, other)

    def _args(self, trace: Trace, slice_id: int) -> tuple[str | None, str | None]:
        """The args as JSON text, or why they cannot be shown."""
        # One file handle serves all requests, so only one may move it at a time.
        with self._args_lock:
            try:
                args = trace.args(slice_id)
            except TraceFormatError as error:
                return None, str(error)
        return (json.dumps(args) if args else None), None


_Pair = tuple[str, int, int]
"""Relation, cause and effect."""


def _parents(trace: Trace, slice_id: int) -> Iterator[int]:
    parent = int(trace.slices.parent[slice_id])
    while parent != slice_id:
        yield parent
        slice_id, parent = parent, int(trace.slices.parent[parent])


def _links(trace: Trace, slice_id: int) -> Iterator[_Pair]:
    """The chain op → runtime call → device work that a slice is part of."""
    launches = trace.launches
    at = int(np.searchsorted(launches.device_slice, slice_id))
    if at < launches.device_slice.size and int(launches.device_slice[at]) == slice_id:
        rows: U32 = np.array([at], np.uint32)
    else:
        rows = _launched_inside(trace, slice_id)
    for row in rows.tolist():
        work, call = int(launches.device_slice[row]), int(launches.launch_slice[row])
        has_call, has_op = bool(launches.has_launch[row]), bool(launches.has_op[row])
        op = int(launches.op_slice[row])
        if has_op and has_call:
            yield "op", op, call
        if has_call:
            yield "launch", call, work
        elif has_op:
            yield "op", op, work


def _launched_inside(trace: Trace, slice_id: int) -> U32:
    """Rows of the device work that a host slice, or a call inside it on its thread, caused."""
    s, launches = trace.slices, trace.launches
    cause = np.where(launches.has_launch, launches.launch_slice, launches.op_slice)
    known = launches.has_launch | launches.has_op
    start = int(s.start_ns[slice_id])
    end = start + int(s.dur_ns[slice_id])
    at = s.start_ns[cause]
    inside = known & (s.track[cause] == s.track[slice_id]) & (at >= start) & (at < end)
    inside &= s.depth[cause] > s.depth[slice_id]
    return np.flatnonzero(inside | (known & (cause == slice_id))).astype(np.uint32)


def _flows(trace: Trace, slice_id: int) -> Iterator[_Pair]:
    """Links as the file states them."""
    flows = trace.flows
    for row in np.flatnonzero((flows.slice_out == slice_id) | (flows.slice_in == slice_id)):
        kind = trace.strings[int(flows.kind[row])]
        yield kind, int(flows.slice_out[row]), int(flows.slice_in[row])
