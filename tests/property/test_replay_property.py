"""The replay on random programs: it reproduces what it replays, and removing never adds time."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.made_trace import MadeTrace
from trnscope.advisor.context import StepContext
from trnscope.advisor.removal import DeviceCut, HostCut, Removal
from trnscope.advisor.window import typical_steps
from trnscope.model.kinds import DEVICE_WORK

ACTIONS = ("op", "gap", "launch", "blocking", "wait", "event", "autograd", "loader")
programs = st.lists(
    st.tuples(st.sampled_from(ACTIONS), st.integers(1, 900), st.sampled_from((7, 9, 20))),
    min_size=1,
    max_size=25,
)
shares = st.floats(0.0, 1.0, allow_nan=False)


def run(made: MadeTrace, program: list[tuple[str, int, int]], autograd: int) -> None:
    """One step of a program."""
    made.op("aten::begin", 1)
    for action, us, stream in program:
        if action == "op":
            made.op("aten::mm", us)
        elif action == "gap":
            made.gap(us)
        elif action in ("launch", "blocking"):
            made.launch(us, stream=stream, blocking=action == "blocking", call="cudaMemcpyAsync")
        elif action == "wait":
            made.wait("cudaDeviceSynchronize")
        elif action == "event":
            made.call("cudaStreamWaitEvent", 1)
        elif action == "autograd":
            made.gap(1)
            made.on_thread(autograd, lambda us=us: made.op("MulBackward0", us))  # type: ignore[misc]
            made.gap(1)
        else:
            made.range("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", 500 + us)
    made.op("aten::end", 1)


def context_of(folder: Path, program: list[tuple[str, int, int]], steps: int) -> StepContext:
    made = MadeTrace(folder)
    autograd = made.builder.thread(tid=200)
    made.steps(steps, lambda: run(made, program, autograd))
    trace = made.open().traces[0]
    window = typical_steps(trace)
    assert window is not None
    return StepContext(trace, window)


def removal(context: StepContext, host: float, device: float, seed: int) -> Removal:
    """A random part of everything."""
    assert context.replay is not None
    chosen = np.random.default_rng(seed)
    graph = context.replay.graph
    work = context.trace.slices.of_kind(*DEVICE_WORK)
    picked = work[chosen.random(work.size) < 0.5]
    calls = np.array(sorted(p.call for p in graph.points if p.call is not None), np.uint32)
    cuts = tuple(HostCut(track, own, host) for track, own in graph.own.items())
    return Removal(cuts, (DeviceCut(picked, device),), calls[chosen.random(calls.size) < 0.5])


@settings(max_examples=60, deadline=None)
@given(programs, st.integers(1, 4))
def test_nothing_removed_is_what_was_recorded(
    program: list[tuple[str, int, int]], steps: int
) -> None:
    with TemporaryDirectory() as folder:
        replay = context_of(Path(folder), program, steps).replay
        assert replay is not None
        assert replay.recorded_ns == replay.graph.recorded_ns
        assert replay.saved_ns(Removal()) == 0


@settings(max_examples=60, deadline=None)
@given(programs, shares, shares, st.integers(0, 9), shares)
def test_removing_more_never_gives_a_longer_step(
    program: list[tuple[str, int, int]], host: float, device: float, seed: int, less: float
) -> None:
    with TemporaryDirectory() as folder:
        context = context_of(Path(folder), program, 2)
        assert context.replay is not None
        more = removal(context, host, device, seed)
        part = removal(context, host * less, device * less, seed)
        none = context.replay.duration_ns(Removal())
        assert context.replay.duration_ns(more) <= context.replay.duration_ns(part) + 1
        assert context.replay.duration_ns(part) <= none + 1
        both = more.plus(removal(context, device, host, seed + 1))
        assert context.replay.duration_ns(both) <= context.replay.duration_ns(more) + 1
        assert 0 <= context.replay.saved_ns(more) <= context.window.step_ns
