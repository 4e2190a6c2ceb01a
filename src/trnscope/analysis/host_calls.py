"""Which slices are calls in the sense of torch's table, and each one's parent and own time.

The rules, which are those of ``key_averages()``:

- Calls are host slices: ops, annotations, runtime calls, profiler overhead, others; Python
  frames too, when asked for or when the trace holds nothing else.
- A few utility ops are never listed; their time stays with the call around them.
- The annotation of an asynchronous collective (``gloo:all_reduce``) ends on another thread
  than it began: it has a total, no own time, no parent and no children.
- A call that is the only child of a call of the same name is one call with it.

A trace of nothing but frames or foreign slices has no torch table to equal: there every frame
is a call.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from trnscope import _native
from trnscope.analysis.grouping import I64, U32, group_sum
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


@dataclass(frozen=True)
class HostCalls:
    """The calls of one trace. Arrays have one entry a slice of the trace unless said."""

    listed: Bool
    """By slice kind (256 entries): whether slices of it are calls."""
    is_framework: bool
    """Whether the trace holds ops, annotations or runtime calls, and not only frames."""
    name_key: U32
    """String id of the name, plus ``num_strings`` for an annotation; torch keeps the two
    apart. At least ``2 * num_strings`` for a slice that is no call."""
    num_strings: int
    calls: I64
    """Slices with each name key; ``2 * num_strings`` entries, duplicates not yet merged."""
    parent: U32
    """Slice id of the call around each slice; a root holds its own."""
    self_ns: I64
    duplicates: U32
    """Slice ids, rising, of calls that are one with their parent."""
    owners: U32
    """For each duplicate: the slice id of the call that it is part of."""

    @property
    def num_keys(self) -> int:
        """Name keys of slices that are calls."""
        return 2 * self.num_strings

    def name_of(self, key: int) -> int:
        """String id of a name key."""
        return key % self.num_strings

    def is_call(self, slices: U32) -> Bool:
        """For each slice id: whether it is a call (a duplicate is one too)."""
        return np.asarray(self.name_key[slices] < self.num_keys, np.bool_)


def host_calls(trace: Trace, *, python: bool) -> HostCalls:
    """The calls of a trace; ``python`` asks for Python frames among them."""
    slices = trace.slices
    listed, is_framework, skips_python = _listed_kinds(trace, python)
    num_strings = len(trace.strings)
    name_key = _name_keys(trace, listed, num_strings)
    calls = group_sum(name_key, slices.dur_ns, 3 * num_strings)[0][: 2 * num_strings]
    utility, collective = _excluded_keys(trace, calls, num_strings)
    self_ns = slices.op_self_ns if skips_python else slices.self_ns
    parent = slices.parent
    excluded = np.union1d(utility, collective)
    apart = np.isin(name_key, excluded) if excluded.size else None
    tracks = _tracks_to_nest_again(trace, apart)
    if tracks:
        parent, self_ns = parent.copy(), self_ns.copy()
        taken = listed[slices.kind]
        if apart is not None:
            taken &= ~apart
            self_ns[apart] = 0
        _nest_again(trace, taken, tracks, parent, self_ns)
    if utility.size:
        name_key[np.isin(name_key, utility)] = 2 * num_strings
        calls[utility] = 0
    if skips_python:
        parent = _call_parents(name_key, parent, 2 * num_strings)
    duplicates = owners = np.empty(0, np.uint32)
    if is_framework:
        duplicates, owners = _duplicates(trace, name_key, parent, self_ns, 2 * num_strings)
    return HostCalls(
        listed=listed,
        is_framework=is_framework,
        name_key=name_key,
        num_strings=num_strings,
        calls=calls,
        parent=parent,
        self_ns=self_ns,
        duplicates=duplicates,
        owners=owners,
    )


def _listed_kinds(trace: Trace, python: bool) -> tuple[Bool, bool, bool]:
    """Which kinds are calls, whether any is the framework's, whether frames are left out."""
    present = np.zeros(256, np.bool_)
    present[trace.slices.kind] = True
    is_framework = bool(present[list(_FRAMEWORK)].any())
    listed = np.zeros(256, np.bool_)
    listed[[*_FRAMEWORK, *_OTHER_HOST]] = True
    listed[SliceKind.PYTHON] = python or not is_framework
    skips_python = bool(present[SliceKind.PYTHON] and not listed[SliceKind.PYTHON])
    return listed & present, is_framework, skips_python


def _name_keys(trace: Trace, listed: Bool, num_strings: int) -> U32:
    offset = np.where(listed, 0, 2 * num_strings).astype(np.uint32)
    if listed[SliceKind.ANNOTATION]:
        offset[SliceKind.ANNOTATION] = num_strings
    return np.add(trace.slices.name, offset[trace.slices.kind], dtype=np.uint32)


def _excluded_keys(trace: Trace, calls: I64, num_strings: int) -> tuple[I64, I64]:
    """Keys of the utility ops and of the asynchronous collectives that occur."""
    used = np.flatnonzero(calls)
    texts = trace.strings.take(used % num_strings) if num_strings else []
    utility = [key for key, text in zip(used, texts, strict=True) if text in _UTILITY]
    collective = [
        key
        for key, text in zip(used, texts, strict=True)
        if key >= num_strings and _ASYNC_COLLECTIVE.match(text)
    ]
    return np.array(utility, np.int64), np.array(collective, np.int64)


def _tracks_to_nest_again(trace: Trace, apart: Bool | None) -> list[int]:
    """Tracks that hold slices to leave out, or slices that overlap in part."""
    slices = trace.slices
    is_root = slices.parent == np.arange(len(slices), dtype=np.uint32)
    # The later one of two that overlap in part lies on a deeper lane than its parent's next.
    disturbed = slices.depth != slices.depth[slices.parent] + ~is_root
    if apart is not None:
        disturbed |= apart
    return [int(track) for track in np.unique(slices.track[disturbed])]


def _nest_again(trace: Trace, taken: Bool, tracks: list[int], parent: U32, self_ns: I64) -> None:
    """Nest the slices that are ``taken`` on some tracks and write what follows in place.

    Own time is the duration less those of all children, as torch has it, also where children
    overlap. Where torch comes out below zero it is the time that no child covers. Slices that
    are not taken keep their parent, so that what they contain can be found from them.
    """
    slices = trace.slices
    for track in tracks:
        low, high = np.searchsorted(slices.track, [track, track + 1])
        nested = np.flatnonzero(taken[low:high]) + low
        if nested.size == 0:
            continue
        above, own_ns = _native.nest_calls(slices.start_ns[nested], slices.dur_ns[nested])
        parent[nested] = nested[above]
        self_ns[nested] = own_ns


def _duplicates(
    trace: Trace, name_key: U32, above: U32, self_ns: I64, num_keys: int
) -> tuple[U32, U32]:
    """Calls that are the only child of a call of the same name, and the head of each chain."""
    candidates = _same_name_as_parent(trace, name_key, above, num_keys)
    parents = above[candidates]
    dur = trace.slices.dur_ns
    # Another child of any length would make the parent's own time shorter.
    alone = self_ns[parents] + dur[candidates] == dur[parents]
    candidates, parents = candidates[alone], parents[alone]
    if candidates.size == 0:
        return candidates, candidates
    empties = _empty_children(trace, name_key, above, num_keys, parents)
    single = empties == (dur[candidates] == 0)
    duplicates = candidates[single]
    return duplicates, _heads(duplicates, above)


def _call_parents(name_key: U32, parent: U32, num_keys: int) -> U32:
    """For each slice the nearest call above it; itself where there is none."""
    is_call = (name_key < num_keys).view(np.uint8)
    own = np.arange(parent.size, dtype=np.uint32)
    found, above = _native.climb(parent, is_call, np.ascontiguousarray(parent))
    return np.where((found != 0) & (parent != own), above, own).astype(np.uint32)


def _same_name_as_parent(trace: Trace, name_key: U32, above: U32, num_keys: int) -> U32:
    name = trace.slices.name
    same = np.flatnonzero(name[above] == name).astype(np.uint32)
    same = same[above[same] != same]
    is_call = (name_key[same] < num_keys) & (name_key[above[same]] < num_keys)
    return np.asarray(same[is_call], np.uint32)


def _empty_children(trace: Trace, name_key: U32, above: U32, num_keys: int, parents: U32) -> I64:
    """For each parent how many of its children have no length."""
    empty = np.flatnonzero(trace.slices.dur_ns == 0).astype(np.uint32)
    empty = empty[(name_key[empty] < num_keys) & (above[empty] != empty)]
    ranked = np.sort(above[empty])
    low, high = (np.searchsorted(ranked, parents, side=side) for side in ("left", "right"))
    return np.asarray(high - low, np.int64)


def _heads(duplicates: U32, above: U32) -> U32:
    heads = above[duplicates]
    while duplicates.size:
        at = np.minimum(np.searchsorted(duplicates, heads), duplicates.size - 1)
        inner = np.asarray(duplicates[at] == heads, np.bool_)
        if not inner.any():
            break
        heads[inner] = above[heads[inner]]
    return heads
