"""Which forward op a backward op belongs to, and which thread a thread of autograd works for.

A thread of autograd's engine runs what another thread asked for when it called backward.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trnscope.analysis.grouping import distinct
from trnscope.analysis.step_finder import find_steps
from trnscope.analysis.threads import is_host_thread, main_thread
from trnscope.model.intervals import I64
from trnscope.model.kinds import SliceKind
from trnscope.store.reader import Trace
from trnscope.store.tables import U32


@dataclass(frozen=True, eq=False, repr=False)
class BackwardLinks:
    """Pairs of a forward op and the backward op that autograd ran for it, by backward op."""

    forward: U32
    """Slice ids of the forward ops."""
    backward: U32
    """Slice ids of the backward ops, rising, aligned with ``forward``."""


def link_backward(trace: Trace) -> BackwardLinks:
    """Which forward op each backward op belongs to, by torch's sequence numbers.

    Sequence numbers count per forward thread, and a backward op names that thread by torch's
    own number. So each such number is first matched with the host thread whose forward ops
    carry most of its sequence numbers. Of several forward ops with one number, the latest to
    start made the autograd node.
    """
    empty = BackwardLinks(np.empty(0, np.uint32), np.empty(0, np.uint32))
    numbers, forward_threads = trace.attribute("sequence_number"), trace.attribute("forward_thread")
    if numbers is None or forward_threads is None:
        return empty
    ops, number = numbers.slices, np.asarray(numbers.values, np.int64)
    has_thread, thread = forward_threads.of(ops)
    usable = (number >= 0) & (trace.slices.kind[ops] == SliceKind.CPU_OP)
    is_backward = usable & has_thread & (thread > 0)
    is_forward = usable & ~is_backward
    found: list[tuple[U32, U32]] = []
    for torch_thread in distinct(thread[is_backward])[0].tolist():
        mine = is_backward & (thread == torch_thread)
        pairs = _match(trace, (ops[is_forward], number[is_forward]), (ops[mine], number[mine]))
        found.append(pairs)
    if not found:
        return empty
    forward, backward = (
        np.concatenate(side).astype(np.uint32) for side in zip(*found, strict=True)
    )
    order = np.argsort(backward, kind="stable")
    return BackwardLinks(forward[order], backward[order])


def calling_threads(trace: Trace) -> I64:
    """For each track the thread that its work is done for: itself, or who called backward.

    A thread that ran backward ops works for the thread of most of their forward ops; any other
    host thread works for the main thread.
    """
    caller = np.arange(len(trace.tracks), dtype=np.int64)
    main = main_thread(trace, find_steps(trace))
    if main is not None:
        caller[is_host_thread(trace)] = main
    links = link_backward(trace)
    of_forward = trace.slices.track[links.forward]
    of_backward = trace.slices.track[links.backward]
    for track in np.flatnonzero(np.bincount(of_backward)).tolist():
        caller[track] = int(np.argmax(np.bincount(of_forward[of_backward == track])))
    return caller


def _match(trace: Trace, forward: tuple[U32, I64], backward: tuple[U32, I64]) -> tuple[U32, U32]:
    """Pair backward ops with the forward ops of the one thread that fits them best."""
    backward_ops, wanted = backward
    forward_ops, number = forward
    fits = np.isin(number, wanted)
    forward_ops, number = forward_ops[fits], number[fits]
    if forward_ops.size == 0:
        return forward_ops, forward_ops
    track = trace.slices.track[forward_ops]
    on_best = track == np.argmax(_num_distinct(track, number))
    forward_ops, number = forward_ops[on_best], number[on_best]
    order = np.lexsort((forward_ops, trace.slices.start_ns[forward_ops], number))
    forward_ops, number = forward_ops[order], number[order]
    at = np.searchsorted(number, wanted, side="right") - 1
    has = (at >= 0) & (number[np.maximum(at, 0)] == wanted)
    return forward_ops[at[has]], backward_ops[has]


def _num_distinct(track: U32, number: I64) -> I64:
    """For each track how many different numbers it has."""
    order = np.lexsort((number, track))
    track, number = track[order], number[order]
    is_new = np.append(True, (track[1:] != track[:-1]) | (number[1:] != number[:-1]))
    return np.bincount(track[is_new])
