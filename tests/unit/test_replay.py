"""The replay: small graphs whose answers are computed by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.unit.made_trace import MadeTrace
from trnscope.advisor.context import StepContext
from trnscope.advisor.removal import DeviceCut, HostCut, Removal
from trnscope.advisor.window import typical_steps
from trnscope.model.intervals import Intervals
from trnscope.model.kinds import SliceKind
from trnscope.store.reader import Trace


@pytest.fixture
def made(tmp_path: Path) -> MadeTrace:
    return MadeTrace(tmp_path)


def context_of(made: MadeTrace) -> StepContext:
    trace = made.open().traces[0]
    window = typical_steps(trace)
    assert window is not None
    return StepContext(trace, window)


def named(trace: Trace, name: str) -> np.ndarray[tuple[int], np.dtype[np.uint32]]:
    found = [at for at in range(len(trace.slices)) if trace.strings[trace.slices.name[at]] == name]
    return np.array(found, np.uint32)


def saved_us(context: StepContext, removal: Removal) -> float:
    assert context.replay is not None
    return context.replay.saved_ns(removal) / 1000


def without_work(context: StepContext, name: str, share: float = 1.0) -> float:
    return saved_us(context, Removal((), (DeviceCut(named(context.trace, name), share),)))


def without_host(context: StepContext, name: str, share: float = 1.0) -> float:
    return saved_us(context, context.host_removal(named(context.trace, name), share))


def test_nothing_removed_gives_the_recorded_window(made: MadeTrace) -> None:
    def body() -> None:
        made.op("aten::mm", 20, lambda: made.launch(300))
        made.launch(50, stream=9)
        made.wait()
        made.gap(100)

    context = context_of(made.steps(3, body))
    assert context.replay is not None
    assert context.replay.recorded_ns == context.replay.graph.recorded_ns
    assert context.replay.recorded_ns == context.window.end_ns - context.window.start_ns


def test_host_time_of_a_step_without_device_comes_back_whole(made: MadeTrace) -> None:
    def body() -> None:
        made.op("aten::mm", 70)
        made.op("aten::add", 30)

    context = context_of(made.steps(4, body))
    assert without_host(context, "aten::mm") == 70
    assert without_host(context, "aten::mm", 0.5) == 35
    assert without_host(context, "aten::add") == 30


def test_what_becomes_critical_next_is_the_limit(made: MadeTrace) -> None:
    # The host takes 100 and waits for 400 of device work that it launched at 0: until 405.
    def body() -> None:
        made.launch(400, "slow")
        made.op("aten::prepare", 95)
        made.wait()

    context = context_of(made.steps(1, body))
    assert context.window.step_ns == 405_000
    # Without the kernel the host is the limit: 100.
    assert without_work(context, "slow") == 305
    # Half of it: 5 + 200.
    assert without_work(context, "slow", 0.5) == 200
    # The host's work hides behind the kernel: removing it gives nothing.
    assert without_host(context, "aten::prepare") == 0


def test_waits_of_a_device_bound_step_cost_little(made: MadeTrace) -> None:
    # Device-bound: the host waits each step, and launches the next kernel 10 after that.
    def bound() -> None:
        made.launch(1000, "kernel")
        made.wait("cudaStreamSynchronize")
        made.gap(10)

    context = context_of(made.steps(5, bound))
    waits = Removal(waits=named(context.trace, "cudaStreamSynchronize"))
    # Per step 5 latency + 1000 + 10 of host: 5075. Without waits the stream is never empty, and
    # what the host does after the last kernel was launched is no longer last: 5 + 5 * 1000.
    assert context.window.step_ns == 1_015_000
    assert saved_us(context, waits) == 14


def test_a_wait_that_empties_the_queue_costs_what_the_host_takes(made: MadeTrace) -> None:
    def body() -> None:
        made.op("aten::forward", 200, lambda: made.launch(150, "kernel"))
        made.wait()

    context = context_of(made.steps(10, body))
    # 5 launch + 200 op: the kernel (155) ended before; the wait takes 1 and costs 1.
    assert context.window.step_ns == 206_000
    assert saved_us(context, Removal(waits=named(context.trace, "cudaStreamSynchronize"))) == 0


def test_streams_wait_for_one_another_by_events(made: MadeTrace) -> None:
    # Stream 9 runs 300 after stream 7's 200, held back by an event; the host waits for both.
    def body() -> None:
        made.launch(200, "first", stream=7)
        made.call("cudaStreamWaitEvent", 1)
        made._free[9] = max(made._free.get(9, 0), made._free[7])
        made.launch(300, "second", stream=9)
        made.wait()

    context = context_of(made.steps(1, body))
    assert context.window.step_ns == 505_000
    assert without_work(context, "first") == 194  # then the second waits for its launch: 11 + 300
    assert without_work(context, "second") == 300


def test_communication_beside_compute_is_hidden(made: MadeTrace) -> None:
    def body() -> None:
        made.launch(100, "reduce", kind=SliceKind.COLLECTIVE, stream=20)
        made.launch(500, "backward", stream=7)
        made.wait()

    context = context_of(made.steps(1, body))
    assert without_work(context, "reduce") == 0
    assert without_work(context, "backward") == 405  # then the reduction is last: 105 of 510


def test_another_thread_holds_up_the_main_one(made: MadeTrace) -> None:
    autograd = made.builder.thread(tid=200)

    def body() -> None:
        made.op("aten::forward", 100)
        made.gap(10)
        made.on_thread(autograd, lambda: made.op("MulBackward0", 300))
        made.gap(20)
        made.op("aten::step", 50)

    context = context_of(made.steps(2, body))
    assert context.window.step_ns == 480_000
    assert without_host(context, "MulBackward0") == 300
    assert without_host(context, "MulBackward0", 0.5) == 150
    main = context.main
    assert main is not None
    whole = Intervals(np.array([context.window.start_ns]), np.array([context.window.end_ns]))
    # The main thread's own time is 180 of 480; it does not run while it waits.
    assert saved_us(context, Removal((HostCut(main, whole),))) == 180


def test_batches_of_workers_come_at_their_own_time(made: MadeTrace) -> None:
    def body() -> None:
        made.range("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", 800)
        made.op("aten::mm", 1200)

    context = context_of(made.steps(3, body))
    # Making the rest quicker only makes the wait longer: the next batch comes when it comes. Only
    # what follows the last batch gets shorter.
    assert without_host(context, "aten::mm") == 400
    loading = context.loading
    both = context.host_removal(loading)
    assert saved_us(context, Removal(both.host, (), loading)) == 800


def test_own_time_of_the_main_thread_is_the_limit_of_launches(made: MadeTrace) -> None:
    def body() -> None:
        for _ in range(10):
            made.gap(45)
            made.launch(10, "tiny")

    context = context_of(made.steps(2, body))
    assert without_work(context, "tiny") == pytest.approx(5, abs=1)  # only the last one's tail
    main = context.main
    assert main is not None and context.replay is not None
    own = context.replay.graph.own[main]
    # Launches come at half the time apart: 250 instead of 500 per step.
    assert saved_us(context, Removal((HostCut(main, own, 0.5),))) == pytest.approx(250, abs=3)


def test_steps_that_stand_out_are_left_out(tmp_path: Path) -> None:
    made = MadeTrace(tmp_path)
    made.step(lambda: made.op("aten::compile", 90_000))
    made.steps(4, lambda: made.op("aten::mm", 100))
    window = typical_steps(made.open().traces[0])
    assert window is not None
    assert (window.num_steps, window.step_ns, len(window.left_out)) == (4, 100_000, 1)


@pytest.mark.parametrize("share", [0.0, 0.25, 0.5, 1.0])
def test_time_in_two_cuts_goes_once(made: MadeTrace, share: float) -> None:
    context = context_of(made.steps(2, lambda: made.op("aten::mm", 100)))
    one = context.host_removal(named(context.trace, "aten::mm"))
    assert saved_us(context, one.plus(one.scaled(share))) == 100
    assert saved_us(context, one.without(one)) == 0
