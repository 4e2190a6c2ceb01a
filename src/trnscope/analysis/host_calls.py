"""Which slices are calls in the sense of torch's table, and each one's parent and own time.

The rules, which are those of ``key_averages()``:

- Calls are host slices: ops, annotations, runtime calls, profiler overhead, others; Python
  frames too, when asked for or when the trace holds nothing else.
- A few utility ops are never listed; their time stays with the call around them.
- The annotation of an asynchronous collective (``gloo:all_reduce``) ends on another thread
  than it began: it has a total, no own time, no parent and no children. So has a call that was
  still open when the profiler stopped; its total ends there, whatever the trace says.
- A call that is the only child of a call of the same name is one call with it.

A trace of nothing but frames or foreign slices has no torch table to equal: there every frame
is a call.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from trnscope import _native
from trnscope.analysis.grouping import I64, U32
from trnscope.model.kinds import SliceKind
from trnscope.store.reader import Trace
from trnscope.store.tables import Bool

_UTILITY = frozenset(
    {
        "[memory]",
        "[OutOfMemory]",
        "profiler::_record_function_enter",
        "profiler::_record_function_enter_new",
        "profiler::_record_function_exit",
        "aten::is_leaf",
        "aten::output_nr",
        "aten::_version",
    }
)
_ASYNC_COLLECTIVE = re.compile(r"(gloo|nccl|rccl|xccl|hccl|ucc|mpi|neuron):\w")
"""How torch.distributed titles the work of a process group: backend, colon, collective."""
_FRAMEWORK = (SliceKind.CPU_OP, SliceKind.ANNOTATION, SliceKind.RUNTIME)
_CLOSED_BY_TORCH = (SliceKind.CPU_OP, SliceKind.ANNOTATION)
_OTHER_HOST = (SliceKind.OVERHEAD, SliceKind.OTHER)
_IS_HOST = np.zeros(256, np.bool_)
_IS_HOST[[*_FRAMEWORK, *_OTHER_HOST, SliceKind.PYTHON]] = True
_ANNOTATION_RANGE, _PYTHON_RANGE, _NUM_CALL_RANGES = 1, 2, 3
"""Ranges of keys, ``num_strings`` each; ops and all others have range 0."""


@dataclass(frozen=True)
class HostCalls:
    """The calls of one trace. Arrays have one entry a slice of the trace unless said."""

    is_framework: bool
    """Whether the trace holds ops, annotations or runtime calls, and not only frames."""
    skips_python: bool
    """Whether the trace holds Python frames that are no calls."""
    num_strings: int
    key: U32
    """String id of the name plus, by the kind of slice, 0 to 3 times ``num_strings``: torch
    keeps annotations apart from ops of the same name. At least ``num_keys`` for no call."""
    dur_ns: I64
    self_ns: I64
    above: U32
    """Slice id of the call, or of the frame that is no call, around each slice; a root holds
    its own."""
    duplicates: U32
    """Slice ids, rising, of calls that are one with their parent."""
    owners: U32
    """For each duplicate: the slice id of the call that it is part of."""
    sums: tuple[I64, I64, I64] | None
    """Calls, total and self time by key, duplicates not merged; absent where times were
    corrected after they had been added up."""

    @property
    def num_keys(self) -> int:
        """Keys of slices that are calls."""
        return _NUM_CALL_RANGES * self.num_strings

    def is_annotation(self, key: int) -> bool:
        """Whether a key is one of annotations."""
        return key // self.num_strings == _ANNOTATION_RANGE

    @cached_property
    def is_call(self) -> Bool:
        """Whether a slice is a call (a duplicate is one too)."""
        return np.asarray(self.key < self.num_keys, np.bool_)

    @cached_property
    def parent(self) -> U32:
        """Slice id of the call around each slice; a slice outside of all holds its own."""
        if not self.skips_python:
            return self.above
        own = np.arange(self.above.size, dtype=np.uint32)
        found, above = _native.climb(
            self.above, self.is_call.view(np.uint8), np.ascontiguousarray(self.above)
        )
        return np.where((found != 0) & (self.above != own), above, own).astype(np.uint32)


def host_calls(trace: Trace, *, python: bool) -> HostCalls:
    """The calls of a trace; ``python`` asks for Python frames among them."""
    slices = trace.slices
    present = _native.kinds_present(slices.kind)
    is_framework = bool(present[list(_FRAMEWORK)].any())
    lists_python = python or not is_framework
    skips_python = bool(present[SliceKind.PYTHON]) and not lists_python
    own_ns = slices.op_self_ns if skips_python else slices.self_ns
    survey = _Survey(
        *_native.survey_calls(
            slices.name,
            slices.kind,
            slices.parent,
            slices.depth,
            slices.dur_ns,
            own_ns,
            _first_keys(lists_python, len(trace.strings)),
            _NUM_CALL_RANGES * len(trace.strings),
            (_NUM_CALL_RANGES + 1) * len(trace.strings),
        )
    )
    work = _Work(trace, survey, slices.parent, slices.dur_ns, own_ns)
    duplicates = owners = np.empty(0, np.uint32)
    if is_framework:
        work.set_apart()
        duplicates, owners = work.duplicates()
    return HostCalls(
        is_framework=is_framework,
        skips_python=skips_python,
        num_strings=len(trace.strings),
        key=survey.key,
        dur_ns=work.dur_ns,
        self_ns=work.self_ns,
        above=work.above,
        duplicates=duplicates,
        owners=owners,
        sums=None if work.tracks else (survey.count, survey.total_ns, survey.self_ns),
    )


def _first_keys(lists_python: bool, num_strings: int) -> U32:
    """The first key of each kind of slice: ops and such, annotations, frames, no calls."""
    ranges = np.full(256, _NUM_CALL_RANGES, np.uint32)
    ranges[[SliceKind.CPU_OP, SliceKind.RUNTIME, *_OTHER_HOST]] = 0
    ranges[SliceKind.ANNOTATION] = _ANNOTATION_RANGE
    if lists_python:
        ranges[SliceKind.PYTHON] = _PYTHON_RANGE
    return ranges * np.uint32(num_strings)


@dataclass(frozen=True)
class _Survey:
    """What one native pass over all slices finds; see native/call_survey.h."""

    key: U32
    count: I64
    total_ns: I64
    self_ns: I64
    overlapping: U32
    same_name: U32
    empty: U32


@dataclass
class _Work:
    """Own times and nesting while they are being corrected."""

    trace: Trace
    survey: _Survey
    above: U32
    dur_ns: I64
    self_ns: I64
    nested: U32 = field(default_factory=lambda: np.empty(0, np.uint32))
    """Slice ids of the calls on tracks that were nested again."""
    tracks: list[int] = field(default_factory=list)
    """These tracks."""
    apart: U32 = field(default_factory=lambda: np.empty(0, np.uint32))
    """Slice ids of what was taken out of the nesting."""

    def set_apart(self) -> None:
        """Take utility ops, asynchronous collectives and unclosed calls out of the nesting.

        Tracks that hold such, and tracks whose slices overlap in part, are nested again.
        """
        key, num_call_keys = self.survey.key, _num_call_keys(self.trace)
        utility, collective = _excluded_keys(self.trace, self.survey.count)
        unclosed, unclosed_ns = _unclosed(self.trace)
        apart = unclosed
        if utility or collective:
            by_name = _is_in(key, [*utility, *collective], self.survey.count.size)
            apart = np.union1d(apart, np.flatnonzero(by_name)).astype(np.uint32)
        overlapping = self.survey.overlapping
        on_host = _IS_HOST[self.trace.slices.kind[overlapping]]
        disturbed = np.concatenate((apart, overlapping[on_host]))
        self.tracks = np.unique(self.trace.slices.track[disturbed]).tolist()
        if not self.tracks:
            return
        self.apart = apart
        self.above, self.self_ns = self.above.copy(), self.self_ns.copy()
        self.self_ns[apart] = 0
        is_taken = key < num_call_keys
        is_taken[apart] = False
        self.nested = np.concatenate([self._nest_again(track, is_taken) for track in self.tracks])
        if utility:
            key[_is_in(key, utility, self.survey.count.size)] = num_call_keys
        if unclosed.size:
            self.dur_ns = self.dur_ns.copy()
            self.dur_ns[unclosed] = unclosed_ns

    def _nest_again(self, track: int, is_taken: Bool) -> U32:
        """Nest the calls of a track that are taken; returns their slice ids.

        Own time is the duration less those of all children, as torch has it, also where
        children overlap. Where torch comes out below zero it is the time that no child covers.
        Slices that are not taken keep their parent, so that what they contain can be found
        from them.
        """
        slices = self.trace.slices
        low, high = np.searchsorted(slices.track, [track, track + 1])
        nested: U32 = (np.flatnonzero(is_taken[low:high]) + low).astype(np.uint32)
        above, own_ns = _native.nest_calls(slices.start_ns[nested], slices.dur_ns[nested])
        self.above[nested] = nested[above]
        self.self_ns[nested] = own_ns
        return nested

    def duplicates(self) -> tuple[U32, U32]:
        """Calls that are the only child of a call of the same name, and the head of each chain."""
        candidates, parents = self._same_name_as_parent()
        dur_ns = self.dur_ns
        # Another child of any length would make the parent's own time shorter.
        alone = self.self_ns[parents] + dur_ns[candidates] == dur_ns[parents]
        candidates, parents = candidates[alone], parents[alone]
        # One of no length would not. An empty only child is such a one itself.
        single = self._num_empty_children(parents) == (dur_ns[candidates] == 0)
        return candidates[single], _heads(candidates[single], parents[single])

    def _same_name_as_parent(self) -> tuple[U32, U32]:
        """Calls whose parent is a call of the same name, rising, and these parents."""
        name = self.trace.slices.name
        same = self.survey.same_name
        parents = self._call_above(same)
        if self.tracks:
            above = self.above[self.nested]
            again = self.nested[(name[above] == name[self.nested]) & (above != self.nested)]
            kept = ~np.isin(self.trace.slices.track[same], self.tracks)
            same, parents = same[kept], parents[kept]
            same = np.concatenate((same, again))
            parents = np.concatenate((parents, self.above[again]))
        order = np.argsort(same)
        return same[order], parents[order]

    def _call_above(self, ids: U32) -> U32:
        """The nearest call above each of these, which all have one."""
        if ids.size == 0:
            return ids
        is_call = (self.survey.key < _num_call_keys(self.trace)).view(np.uint8)
        above: U32 = _native.climb(self.above, is_call, self.above[ids])[1]
        return above

    def _num_empty_children(self, parents: U32) -> I64:
        """For each parent how many of its children have no length."""
        empty = self.survey.empty[~np.isin(self.survey.empty, self.apart)]
        if parents.size == 0 or empty.size == 0:
            return np.zeros(parents.size, np.int64)
        ranked = np.sort(self._call_above(empty[self.above[empty] != empty]))
        low, high = (np.searchsorted(ranked, parents, side=side) for side in ("left", "right"))
        return np.asarray(high - low, np.int64)


def _num_call_keys(trace: Trace) -> int:
    return _NUM_CALL_RANGES * len(trace.strings)


def _is_in(keys: U32, wanted: Sequence[int], num_keys: int) -> Bool:
    """Whether each key is one of the wanted ones."""
    table = np.zeros(num_keys, np.bool_)
    table[list(wanted)] = True
    return np.asarray(table[keys], np.bool_)


def _heads(duplicates: U32, parents: U32) -> U32:
    """For each duplicate, rising, the first call above it that is none."""
    heads = parents.copy()
    while heads.size:
        at = np.minimum(np.searchsorted(duplicates, heads), duplicates.size - 1)
        inner = np.flatnonzero(duplicates[at] == heads)
        if inner.size == 0:
            break
        heads[inner] = heads[at[inner]]
    return heads


def _excluded_keys(trace: Trace, count: I64) -> tuple[list[int], list[int]]:
    """Keys of the utility ops and of the asynchronous collectives that occur."""
    num_strings = len(trace.strings)
    used = np.flatnonzero(count[: _num_call_keys(trace)]).tolist()
    texts = trace.strings.take([key % num_strings for key in used])
    utility = [key for key, text in zip(used, texts, strict=True) if text in _UTILITY]
    collective = [
        key
        for key, text in zip(used, texts, strict=True)
        if key // num_strings == _ANNOTATION_RANGE and _ASYNC_COLLECTIVE.match(text)
    ]
    return utility, collective


def _unclosed(trace: Trace) -> tuple[U32, I64]:
    """Slice ids of the calls that were open when the profiler stopped, and their durations.

    Their args say that they are not finished. The exporter lets them run until it wrote them;
    torch's table ends them with the profiler's own span.
    """
    finished = trace.attribute("finished")
    if finished is None:
        return np.empty(0, np.uint32), np.empty(0, np.int64)
    slices, lanes = trace.slices, trace.lanes
    is_open = [trace.strings[text] == "false" for text in finished.values.tolist()]
    unclosed = finished.slices[np.array(is_open, np.bool_)]
    unclosed = unclosed[np.isin(slices.kind[unclosed], _CLOSED_BY_TORCH)]
    # Ends rise along a lane, so the last slice of each ends last.
    last = lanes.first + lanes.count - 1
    spans = last[slices.kind[last] == SliceKind.PROFILER]
    dur_ns = slices.dur_ns[unclosed]
    if spans.size:
        stop_ns = int((slices.start_ns[spans] + slices.dur_ns[spans]).max())
        dur_ns = np.clip(stop_ns - slices.start_ns[unclosed], 0, dur_ns)
    return unclosed, dur_ns
