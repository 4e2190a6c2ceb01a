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
from trnscope.analysis.grouping import I64, U32, distinct, group_sum
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
_OTHER_HOST = (SliceKind.OVERHEAD, SliceKind.OTHER)
_IS_HOST = np.zeros(256, np.bool_)
_IS_HOST[[*_FRAMEWORK, *_OTHER_HOST, SliceKind.PYTHON]] = True
_IS_CLOSED_BY_TORCH = np.zeros(256, np.bool_)
_IS_CLOSED_BY_TORCH[[SliceKind.CPU_OP, SliceKind.ANNOTATION]] = True
_ANNOTATION_RANGE, _PYTHON_RANGE, _NUM_CALL_RANGES = 1, 2, 3
"""Ranges of keys, ``num_strings`` each; ops and all others have range 0."""


@dataclass(frozen=True, eq=False, repr=False)
class SelfTimes:
    """Own times of some slices."""

    slices: U32
    """Slice ids, rising."""
    self_ns: I64

    @staticmethod
    def joined(parts: Sequence[SelfTimes]) -> SelfTimes:
        """All of them; no slice may be in two."""
        slices = np.concatenate([np.empty(0, np.uint32), *(part.slices for part in parts)])
        self_ns = np.concatenate([np.empty(0, np.int64), *(part.self_ns for part in parts)])
        order = np.argsort(slices, kind="stable")
        return SelfTimes(slices[order], self_ns[order])

    def of(self, ids: U32, others_ns: I64) -> I64:
        """For each slice its own time, which is that of ``others_ns`` if it is none of these."""
        own_ns = np.asarray(others_ns[ids], np.int64)
        if self.slices.size:
            at = np.minimum(np.searchsorted(self.slices, ids), self.slices.size - 1)
            own_ns = np.where(self.slices[at] == ids, self.self_ns[at], own_ns)
        return own_ns

    def applied_to(self, others_ns: I64) -> I64:
        """Own time of every slice, which is that of ``others_ns`` if it is none of these."""
        if self.slices.size == 0:
            return others_ns
        own_ns = others_ns.copy()
        own_ns[self.slices] = self.self_ns
        return own_ns


@dataclass(frozen=True, eq=False, repr=False)
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
    stored_self_ns: I64
    """Own time as the store has it."""
    corrected: SelfTimes
    """The slices whose own time is another than the stored one."""
    above: U32
    """Slice id of the call, or of the frame that is no call, around each slice; a root holds
    its own."""
    duplicates: U32
    """Slice ids, rising, of calls that are one with their parent."""
    owners: U32
    """For each duplicate: the slice id of the call that it is part of."""
    sums: tuple[I64, I64, I64]
    """Calls, total and self time by key, duplicates not merged."""

    @property
    def num_keys(self) -> int:
        """Keys of slices that are calls."""
        return _NUM_CALL_RANGES * self.num_strings

    def is_annotation(self, key: int) -> bool:
        """Whether a key is one of annotations."""
        return key // self.num_strings == _ANNOTATION_RANGE

    @cached_property
    def self_ns(self) -> I64:
        """Own time."""
        return self.corrected.applied_to(self.stored_self_ns)

    def self_ns_of(self, ids: U32) -> I64:
        """Own time of these slices."""
        return self.corrected.of(ids, self.stored_self_ns)

    @cached_property
    def is_call(self) -> Bool:
        """Whether a slice is a call (a duplicate is one too)."""
        return np.asarray(self.key < self.num_keys, np.bool_)

    @cached_property
    def is_duplicate(self) -> Bool:
        """Whether a slice is one call with its parent."""
        return _flags([self.duplicates], self.key.size)

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
    trace.release_pages()
    work = _Work(trace, survey, slices.parent, slices.dur_ns, own_ns, skips_python)
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
        stored_self_ns=own_ns,
        corrected=work.corrected,
        above=work.above,
        duplicates=duplicates,
        owners=owners,
        sums=(survey.count, survey.total_ns, survey.self_ns),
    )


def _first_keys(lists_python: bool, num_strings: int) -> U32:
    """The first key of each kind of slice: ops and such, annotations, frames, no calls."""
    ranges = np.full(256, _NUM_CALL_RANGES, np.uint32)
    ranges[[SliceKind.CPU_OP, SliceKind.RUNTIME, *_OTHER_HOST]] = 0
    ranges[SliceKind.ANNOTATION] = _ANNOTATION_RANGE
    if lists_python:
        ranges[SliceKind.PYTHON] = _PYTHON_RANGE
    return ranges * np.uint32(num_strings)


@dataclass(frozen=True, eq=False, repr=False)
class _Survey:
    """What one native pass over all slices finds; see native/call_survey.h.

    Keys and sums follow when calls are corrected.
    """

    key: U32
    count: I64
    total_ns: I64
    self_ns: I64
    overlapping: U32
    same_name: U32
    same_above: U32
    empty: U32


def _no_ids() -> U32:
    return np.empty(0, np.uint32)


@dataclass(eq=False, repr=False)
class _Work:
    """Own times and nesting while they are being corrected."""

    trace: Trace
    survey: _Survey
    above: U32
    dur_ns: I64
    stored_ns: I64
    """Own time as the store has it."""
    skips_python: bool
    corrected: SelfTimes = field(default_factory=lambda: SelfTimes.joined([]))
    moved: U32 = field(default_factory=_no_ids)
    """Slice ids of the calls for which ``above`` was found anew."""
    apart: U32 = field(default_factory=_no_ids)
    """Slice ids, rising, of what was taken out of the nesting."""

    def set_apart(self) -> None:
        """Take utility ops, asynchronous collectives and unclosed calls out of the nesting.

        On tracks that hold such, and where slices overlap in part, own times are corrected.
        """
        utility, collective = _excluded_keys(self.trace, self.survey.count)
        unclosed, unclosed_ns = _unclosed(self.trace)
        self.apart = unclosed
        if utility or collective:
            by_name = self._with_keys([*utility, *collective])
            marked = _flags([by_name, unclosed], len(self.trace.slices))
            self.apart = np.flatnonzero(marked).astype(np.uint32)
        overlapping = self.survey.overlapping
        on_host = _IS_HOST[self.trace.slices.kind[overlapping]]
        disturbed = np.concatenate((self.apart, overlapping[on_host]))
        tracks = np.flatnonzero(np.bincount(self.trace.slices.track[disturbed])).tolist()
        if tracks:
            self._correct(tracks)
            self._add_corrections()
        if utility:
            self._unlist(utility)
        if unclosed.size:
            added = unclosed_ns - self.dur_ns[unclosed]
            np.add.at(self.survey.total_ns, self.survey.key[unclosed], added)
            self.dur_ns = self.dur_ns.copy()
            self.dur_ns[unclosed] = unclosed_ns

    def _correct(self, tracks: Sequence[int]) -> None:
        """Find own times, and what is above, on tracks where the stored ones do not serve."""
        lanes = self.trace.lanes
        if self.apart.size:
            self.above = self.above.copy()
        moved, times = [], []
        for track in tracks:
            mine = np.flatnonzero(lanes.track == track)
            low, high = int(lanes.first[mine[0]]), int((lanes.first + lanes.count)[mine[-1]])
            again, corrected = self._track_again(low, high)
            moved.append(again)
            times.append(corrected)
            self.trace.release_pages()
        self.moved = np.concatenate(moved)
        self.corrected = SelfTimes.joined(times)

    def _track_again(self, low: int, high: int) -> tuple[U32, SelfTimes]:
        """The slices of a track, ``low`` to ``high``, that moved, and own times that differ.

        The stored nesting serves where all slices are calls, and the ones to set apart do not
        overlap others in part: these leave their children to the call around them.
        """
        apart = _within(self.apart, low, high)
        all_calls = not self.skips_python and bool(
            (self.survey.key[low:high] < _num_call_keys(self.trace)).all()
        )
        if all_calls and apart.size == 0:
            return _no_ids(), self._other_self_times(low, high)
        if all_calls and _within(self.survey.overlapping, low, high).size == 0:
            return self._take_out(apart, low, high)
        return self._nest_again(apart, low, high)

    def _other_self_times(self, low: int, high: int) -> SelfTimes:
        """Own time as torch has it: children that overlap each other count in full.

        Where torch comes out below zero it is the time that no child covers.
        """
        slices, rows = self.trace.slices, slice(low, high)
        return SelfTimes(
            *_native.differing_self_times(
                slices.parent[rows],
                slices.start_ns[rows],
                slices.dur_ns[rows],
                self.stored_ns[rows],
                low,
            )
        )

    def _take_out(self, apart: U32, low: int, high: int) -> tuple[U32, SelfTimes]:
        """Leave the children and the own time of some slices to the call around each."""
        is_taken = np.ones(len(self.trace.slices), np.uint8)
        is_taken[apart] = 0
        parent = self.trace.slices.parent
        inside = (np.flatnonzero(is_taken[parent[low:high]] == 0) + low).astype(np.uint32)
        moved = inside[is_taken[inside] != 0]
        found, around = _native.climb(parent, is_taken, parent[moved])
        self.above[moved] = np.where(found != 0, around, moved)
        found, around = _native.climb(parent, is_taken, apart)
        heirs, number = distinct(around[found != 0])
        own_ns = (
            self.stored_ns[heirs]
            + group_sum(number, self.stored_ns[apart[found != 0]], heirs.size)[1]
        )
        return moved, SelfTimes.joined(
            [SelfTimes(apart, np.zeros(apart.size, np.int64)), SelfTimes(heirs, own_ns)]
        )

    def _nest_again(self, apart: U32, low: int, high: int) -> tuple[U32, SelfTimes]:
        """Nest the calls of a track that are not set apart.

        Slices that are not taken keep their parent, so that what they contain can be found
        from them.
        """
        slices = self.trace.slices
        is_taken = self.survey.key[low:high] < _num_call_keys(self.trace)
        is_taken[apart - low] = False
        nested: U32 = (np.flatnonzero(is_taken) + low).astype(np.uint32)
        above, own_ns = _native.nest_calls(slices.start_ns[nested], slices.dur_ns[nested])
        if self.above is slices.parent:
            self.above = self.above.copy()
        self.above[nested] = nested[above]
        differs = own_ns != self.stored_ns[nested]
        return nested, SelfTimes.joined(
            [
                SelfTimes(apart, np.zeros(apart.size, np.int64)),
                SelfTimes(nested[differs], own_ns[differs]),
            ]
        )

    def _add_corrections(self) -> None:
        """Bring the sums of own time up to date."""
        changed = self.corrected.slices
        added = self.corrected.self_ns - self.stored_ns[changed]
        sums = self.survey.self_ns
        sums += group_sum(self.survey.key[changed], added, sums.size)[1]

    def _with_keys(self, keys: Sequence[int]) -> U32:
        wanted = _flags(keys, self.survey.count.size)
        return _native.find_keys(self.survey.key, wanted.view(np.uint8))

    def _unlist(self, keys: Sequence[int]) -> None:
        """Make all slices of these keys no calls."""
        self.survey.key[self._with_keys(keys)] = _num_call_keys(self.trace)
        for sums in (self.survey.count, self.survey.total_ns, self.survey.self_ns):
            sums[list(keys)] = 0

    def duplicates(self) -> tuple[U32, U32]:
        """Calls that are the only child of a call of the same name, and the head of each chain."""
        candidates, parents = self._same_name_as_parent()
        dur_ns = self.dur_ns
        # Another child of any length would make the parent's own time shorter.
        own_ns = self.corrected.of(parents, self.stored_ns)
        alone = own_ns + dur_ns[candidates] == dur_ns[parents]
        candidates, parents = candidates[alone], parents[alone]
        # One of no length would not. An empty only child is such a one itself.
        single = self._num_empty_children(parents) == (dur_ns[candidates] == 0)
        return candidates[single], _heads(candidates[single], parents[single])

    def _same_name_as_parent(self) -> tuple[U32, U32]:
        """Calls whose parent is a call of the same name, rising, and these parents."""
        same, parents = self.survey.same_name, self.survey.same_above
        if self.moved.size == 0 and self.apart.size == 0:
            return same, parents
        name, moved = self.trace.slices.name, self.moved
        above = self.above[moved]
        again = (name[above] == name[moved]) & (above != moved)
        kept = ~_flags([self.moved, self.apart], name.size)[same]
        same = np.concatenate((same[kept], moved[again]))
        order = np.argsort(same, kind="stable")
        return same[order], np.concatenate((parents[kept], above[again]))[order]

    def _call_above(self, ids: U32) -> U32:
        """The nearest call above each of these, which all have one."""
        if ids.size == 0:
            return ids
        is_call = (self.survey.key < _num_call_keys(self.trace)).view(np.uint8)
        above: U32 = _native.climb(self.above, is_call, self.above[ids])[1]
        return above

    def _num_empty_children(self, parents: U32) -> I64:
        """For each parent how many of its children have no length."""
        if parents.size == 0 or self.survey.empty.size == 0:
            return np.zeros(parents.size, np.int64)
        empty = self.survey.empty[~_flags([self.apart], self.above.size)[self.survey.empty]]
        ranked = np.sort(self._call_above(empty[self.above[empty] != empty]))
        low, high = (np.searchsorted(ranked, parents, side=side) for side in ("left", "right"))
        return np.asarray(high - low, np.int64)


def _num_call_keys(trace: Trace) -> int:
    return _NUM_CALL_RANGES * len(trace.strings)


def _flags(marked: Sequence[int] | Sequence[U32], size: int) -> Bool:
    """``size`` flags, set at the marked places."""
    flags = np.zeros(size, np.bool_)
    for places in marked:
        flags[places] = True
    return flags


def _within(ids: U32, low: int, high: int) -> U32:
    """Those of rising ids that are in ``[low, high)``."""
    first, end = np.searchsorted(ids, np.array([low, high], ids.dtype))
    return ids[first:end]


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
    unclosed = unclosed[_IS_CLOSED_BY_TORCH[slices.kind[unclosed]]]
    # Ends rise along a lane, so the last slice of each ends last.
    last = lanes.first + lanes.count - 1
    spans = last[slices.kind[last] == SliceKind.PROFILER]
    dur_ns = slices.dur_ns[unclosed]
    if spans.size:
        stop_ns = int((slices.start_ns[spans] + slices.dur_ns[spans]).max())
        dur_ns = np.clip(stop_ns - slices.start_ns[unclosed], 0, dur_ns)
    return unclosed, dur_ns
