"""Device time by host annotation, across threads; numbers computed by hand (case 21)."""

from __future__ import annotations

from pathlib import Path

import pytest

from trnscope.analysis.attribution import Attribution, attribute_device_time
from trnscope.analysis.backward import link_backward
from trnscope.model.kinds import SliceKind
from trnscope.opened import OpenedProfile
from trnscope.store.builder import TraceBuilder
from trnscope.store.profile import Profile
from trnscope.store.reader import Trace

ANNOTATION = SliceKind.ANNOTATION


@pytest.fixture
def training_step(tmp_path: Path) -> Trace:
    """Forward and optimizer on thread 100, backward's launches on thread 200."""
    b = TraceBuilder(tmp_path / "t")
    main, autograd, gpu = b.thread(tid=100), b.thread(tid=200), b.stream()
    b.slice(main, "ProfilerStep#5", 0, 1000, ANNOTATION)
    for name, start, dur in (("forward", 0, 400), ("backward", 400, 500), ("optimizer", 900, 100)):
        b.slice(main, name, start, dur, ANNOTATION)
    b.slice(main, "aten::linear", 50, 100, sequence_number=7, forward_thread=0)
    name = "autograd::engine::evaluate_function: AddmmBackward0"
    b.slice(autograd, name, 450, 200, sequence_number=7, forward_thread=1)
    work = ((1, main, 100, 150, 80), (2, autograd, 500, 520, 70), (3, autograd, 560, 600, 50))
    for correlation, thread, launch, start, dur in (*work, (4, main, 910, 950, 30)):
        b.slice(thread, "cudaLaunchKernel", launch, 10, SliceKind.RUNTIME, correlation=correlation)
        b.slice(gpu, "k", start, dur, SliceKind.KERNEL, correlation=correlation)
    return b.build()


def totals(attribution: Attribution) -> dict[str, int]:
    return {row.name: row.device_total_ns for row in attribution.rows}


def test_backward_belongs_to_the_thread_that_called_it(training_step: Trace) -> None:
    found = attribute_device_time(Profile((training_step,)))
    assert totals(found) == {"ProfilerStep#5": 230, "backward": 120, "forward": 80, "optimizer": 30}
    assert {r.name: r.self_device_ns for r in found.rows}["ProfilerStep#5"] == 0
    assert {r.name: r.other_thread_ns for r in found.rows}["backward"] == 120
    assert found.unattributed_ns == 0


def test_an_opened_profile_offers_it(training_step: Trace) -> None:
    profile = OpenedProfile((training_step,))
    assert totals(profile.annotations())["backward"] == 120
    assert totals(profile.annotations(same_thread_only=True))["backward"] == 0


def test_on_the_same_thread_only_backward_is_lost(training_step: Trace) -> None:
    found = attribute_device_time(Profile((training_step,)), same_thread_only=True)
    assert totals(found) == {"ProfilerStep#5": 110, "forward": 80, "optimizer": 30, "backward": 0}
    assert (found.outside_ns, found.unlinked_ns, found.unattributed_ns) == (120, 0, 120)


def test_sequence_numbers_link_backward_to_forward(training_step: Trace) -> None:
    links = link_backward(training_step)
    name = training_step.slices.name
    assert training_step.strings.take(name[links.forward]) == ["aten::linear"]
    assert training_step.strings.take(name[links.backward]) == [
        "autograd::engine::evaluate_function: AddmmBackward0"
    ]


def test_sequence_numbers_count_per_forward_thread(tmp_path: Path) -> None:
    """Two model replicas on two threads use the same numbers; told apart by torch."""
    b = TraceBuilder(tmp_path / "t")
    first, second, engine = b.thread(tid=1), b.thread(tid=2), b.thread(tid=3)
    for number, start in ((1, 0), (2, 10), (3, 20)):
        b.slice(first, f"a{number}", start, 5, sequence_number=number)
    b.slice(first, "a3 again", 21, 2, sequence_number=3)
    for number, start in ((2, 0), (3, 10), (4, 20)):
        b.slice(second, f"b{number}", start, 5, sequence_number=number)
    for name, number, thread, start in (
        ("bwd a1", 1, 10, 100),
        ("bwd a3", 3, 10, 110),
        ("bwd b4", 4, 20, 120),
        ("bwd b3", 3, 20, 130),
        ("bwd ?", 9, 20, 140),
    ):
        b.slice(engine, name, start, 5, sequence_number=number, forward_thread=thread)
    # a1, a2 and a3 fit thread 10 best; b3 and b4 fit thread 20 best.
    trace = b.build()
    links = link_backward(trace)
    names = trace.slices.name
    assert list(
        zip(
            trace.strings.take(names[links.backward]),
            trace.strings.take(names[links.forward]),
            strict=True,
        )
    ) == [("bwd a1", "a1"), ("bwd a3", "a3 again"), ("bwd b4", "b4"), ("bwd b3", "b3")]


def test_own_annotations_come_first_and_a_name_counts_once(tmp_path: Path) -> None:
    b = TraceBuilder(tmp_path / "t")
    main, worker, gpu = b.thread(tid=1), b.thread(tid=2), b.stream()
    b.slice(main, "step", 0, 100, ANNOTATION)
    b.slice(main, "block", 10, 60, ANNOTATION)
    b.slice(main, "block", 20, 30, ANNOTATION)
    b.slice(worker, "hook", 25, 20, ANNOTATION)
    for correlation, thread, at, dur in ((1, main, 30, 7), (2, worker, 30, 5), (3, worker, 80, 3)):
        b.slice(thread, "cudaLaunchKernel", at, 1, SliceKind.RUNTIME, correlation=correlation)
        b.slice(gpu, "k", 200 + 10 * correlation, dur, SliceKind.KERNEL, correlation=correlation)
    b.slice(gpu, "lost", 300, 11, SliceKind.KERNEL)
    found = attribute_device_time(Profile((b.build(),)))
    rows = {
        r.name: (r.calls, r.self_device_ns, r.device_total_ns, r.other_thread_ns)
        for r in found.rows
    }
    assert rows == {
        "step": (1, 3, 15, 8),
        "block": (2, 7, 12, 5),
        "hook": (1, 5, 5, 0),
    }
    assert (found.unlinked_ns, found.outside_ns) == (11, 0)


def test_no_annotations(tmp_path: Path) -> None:
    b = TraceBuilder(tmp_path / "t")
    cpu, gpu = b.thread(), b.stream()
    b.slice(cpu, "cudaLaunchKernel", 0, 1, SliceKind.RUNTIME, correlation=1)
    b.slice(gpu, "k", 5, 10, SliceKind.KERNEL, correlation=1)
    assert attribute_device_time(Profile((b.build(),))).to_json() == {
        "schema": 1,
        "annotations": [],
        "unattributed_device_ns": 10,
        "unlinked_ns": 0,
        "outside_ns": 10,
    }


def test_sums_beyond_float64_are_exact(tmp_path: Path) -> None:
    b = TraceBuilder(tmp_path / "t")
    cpu, streams = b.thread(), [b.stream(stream=stream) for stream in (7, 8)]
    b.slice(cpu, "train", 0, 100, ANNOTATION)
    for number, (stream, dur) in enumerate(zip(streams, (1 << 53, 1), strict=True), start=1):
        b.slice(cpu, "cudaLaunchKernel", 10 * number, 5, SliceKind.RUNTIME, correlation=number)
        b.slice(stream, "k", 10 * number, dur, SliceKind.KERNEL, correlation=number)
    (row,) = attribute_device_time(Profile((b.build(),))).rows
    assert row.self_device_ns == row.device_total_ns == (1 << 53) + 1
