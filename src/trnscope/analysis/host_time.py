"""What a host thread did during each step, for traces without device work."""

from __future__ import annotations

import re

from trnscope.analysis.names import slices_named
from trnscope.analysis.step_finder import StepList
from trnscope.analysis.threads import is_host_thread, main_thread
from trnscope.model.intervals import I64, Intervals
from trnscope.model.kinds import SliceKind
from trnscope.store.reader import Trace
from trnscope.store.tables import U32

_RANGES = (SliceKind.CPU_OP, SliceKind.ANNOTATION)

_KNOWN_BY_NAME = (
    ("data_loading", re.compile(r"(?i).*(dataloader|data_load)")),
    (
        "communication",
        re.compile(
            r"(gloo|nccl|rccl|hccl|xccl|mpi|ucc):|_?c10d(_functional)?::|record_param_comms"
        ),
    ),
    ("optimizer", re.compile(r"Optimizer\.(step|zero_grad)#")),
    ("backward", re.compile(r"(torch::)?autograd::|.*Backward\d*$")),
)
"""Parts that the names of their ranges tell."""


def host_parts(trace: Trace, windows: StepList) -> list[tuple[str, I64]]:
    """Each part's ns in each window; the parts add up to the windows.

    Time goes to the first part that fits it. On the main thread: ``data_loading``,
    ``communication``, ``optimizer``, ``backward``, ``operators`` (any other framework op),
    ``runtime`` (a call into a device runtime outside of all ops). Where the main thread has
    none of these open: ``other_threads`` if an op runs on another host thread, else ``other``
    (Python code, or waiting).
    """
    starts, ends = windows.starts, windows.ends
    taken = Intervals.empty()
    parts: list[tuple[str, I64]] = []
    for key, candidates in _candidates(trace, main_thread(trace, windows)):
        parts.append((key, candidates.subtract(taken).covered_within(starts, ends)))
        taken = taken.union(candidates)
    return [*parts, ("other", ends - starts - taken.covered_within(starts, ends))]


def _candidates(trace: Trace, thread: int | None) -> list[tuple[str, Intervals]]:
    """The time that could go to each part, before an earlier part takes its share."""
    ranges, ops = trace.slices.of_kind(*_RANGES), trace.slices.of_kind(SliceKind.CPU_OP)
    mine = _on(trace, ranges, thread)
    runtime = _on(trace, trace.slices.of_kind(SliceKind.RUNTIME), thread)
    named = [
        (key, _covered(trace, slices_named(trace, mine, pattern.match)))
        for key, pattern in _KNOWN_BY_NAME
    ]
    track = trace.slices.track[ops]
    elsewhere = ops[is_host_thread(trace)[track] & (track != thread)] if ops.size else ops
    return [
        *named,
        ("operators", _covered(trace, _on(trace, ops, thread))),
        ("runtime", _covered(trace, runtime)),
        ("other_threads", _covered(trace, elsewhere)),
    ]


def _on(trace: Trace, ids: U32, track: int | None) -> U32:
    return ids[:0] if track is None else ids[trace.slices.track[ids] == track]


def _covered(trace: Trace, ids: U32) -> Intervals:
    return Intervals.lasting(trace.slices.start_ns[ids], trace.slices.dur_ns[ids])
