"""Steps and their device time; numbers computed by hand (cases 21 and 23)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.unit.chrome_json import open_path
from trnscope.analysis.kernels import kernels
from trnscope.analysis.ops import ops
from trnscope.analysis.step_finder import StepEvidence, find_steps
from trnscope.analysis.steps import DeviceTimeBasis, steps, summarize_steps
from trnscope.analysis.summary import summarize
from trnscope.model.kinds import SliceKind
from trnscope.store.builder import TraceBuilder
from trnscope.store.profile import Profile

ANNOTATION = SliceKind.ANNOTATION


def test_doubled_and_overlapping_ranges_are_one_step_each(tmp_path: Path) -> None:
    b = TraceBuilder(tmp_path / "t")
    other, cpu, gpu = b.thread(tid=300), b.thread(tid=100), b.stream()
    b.slice(other, "ProfilerStep#10", 1_000_200, 101_100, ANNOTATION)
    for number, start, dur in ((10, 1000, 101_500), (11, 1100, 101_000), (12, 1200, 100_000)):
        b.slice(cpu, f"ProfilerStep#{number}", start * 1000, dur, ANNOTATION)
    for number, start, dur in ((10, 1020, 110), (11, 1130, 100), (12, 1230, 95)):
        name = f"ProfilerStep#{number}"
        b.slice(gpu, name, start * 1000, dur * 1000, SliceKind.DEVICE_ANNOTATION)
        b.slice(gpu, "gemm", start * 1000, 60_000, SliceKind.KERNEL, correlation=number)
    rows = summarize_steps(b.build())
    assert [r.name for r in rows] == ["ProfilerStep#10", "ProfilerStep#11", "ProfilerStep#12"]
    assert [r.start_ns for r in rows] == [1_000_000, 1_100_000, 1_200_000]
    assert [r.duration_ns for r in rows] == [100_000, 100_000, 100_000]
    assert [r.recorded_ns for r in rows] == [101_500, 101_000, 100_000]
    assert [r.device_ns for r in rows] == [60_000, 60_000, 60_000]
    assert {r.device_ns_basis for r in rows} == {DeviceTimeBasis.CLOCK}
    assert {r.device_ns_by_launch for r in rows} == {None}


def test_same_name_on_one_thread_doubled(tmp_path: Path) -> None:
    b = TraceBuilder(tmp_path / "t")
    cpu = b.thread()
    b.slice(cpu, "ProfilerStep#1", 0, 100, ANNOTATION)
    b.slice(cpu, "ProfilerStep#1", 2, 95, ANNOTATION)
    b.slice(cpu, "ProfilerStep#2", 100, 50, ANNOTATION)
    found = find_steps(b.build())
    assert [(s.name, s.duration_ns) for s in found.steps] == [
        ("ProfilerStep#1", 100),
        ("ProfilerStep#2", 50),
    ]


def test_work_of_other_threads_belongs_to_the_step_of_its_launch(tmp_path: Path) -> None:
    b = TraceBuilder(tmp_path / "t")
    main, autograd, gpu = b.thread(tid=100), b.thread(tid=200), b.stream()
    b.slice(main, "ProfilerStep#5", 0, 1000, ANNOTATION)
    b.slice(main, "ProfilerStep#6", 1000, 1000, ANNOTATION)
    work = ((1, main, 100, 150, 80), (2, autograd, 500, 520, 70), (3, autograd, 560, 600, 50))
    for correlation, thread, launch, start, dur in (*work, (4, main, 910, 1050, 30)):
        b.slice(thread, "cudaLaunchKernel", launch, 10, SliceKind.RUNTIME, correlation=correlation)
        b.slice(gpu, "k", start, dur, SliceKind.KERNEL, correlation=correlation)
    rows = summarize_steps(b.build())
    assert [r.device_ns_by_launch for r in rows] == [230, 0]
    assert [r.device_ns_by_clock for r in rows] == [200, 30]
    assert [r.device_ns for r in rows] == [230, 0]
    assert rows[0].device_ns_basis is DeviceTimeBasis.LAUNCH


def test_device_time_of_a_step_is_a_union(tmp_path: Path) -> None:
    b = TraceBuilder(tmp_path / "t")
    cpu, seven, eight = b.thread(), b.stream(stream=7), b.stream(stream=8)
    b.slice(cpu, "ProfilerStep#1", 0, 100, ANNOTATION)
    for correlation, stream in ((1, seven), (2, eight)):
        b.slice(cpu, "cudaLaunchKernel", correlation, 1, SliceKind.RUNTIME, correlation=correlation)
        b.slice(stream, "k", 10 * correlation, 30, SliceKind.KERNEL, correlation=correlation)
    (row,) = summarize_steps(b.build())
    assert (row.device_ns_by_launch, row.device_ns_by_clock) == (40, 40)


def test_a_step_does_not_reach_over_missing_ones(tmp_path: Path) -> None:
    b = TraceBuilder(tmp_path / "t")
    cpu = b.thread()
    for number, start in ((5, 0), (6, 100), (9, 900)):
        b.slice(cpu, f"ProfilerStep#{number}", start, 95, ANNOTATION)
    assert [s.duration_ns for s in find_steps(b.build()).steps] == [100, 95, 95]


def test_repeated_ranges_named_like_a_step(tmp_path: Path) -> None:
    b = TraceBuilder(tmp_path / "t")
    cpu = b.thread()
    for number in range(3):
        start = 100 * number
        b.slice(cpu, f"train_step {number}", start, 90, ANNOTATION)
        b.slice(cpu, "micro_batch", start, 20, ANNOTATION)
        b.slice(cpu, "micro_batch", start + 30, 20, ANNOTATION)
        b.slice(cpu, "Optimizer.step#SGD.step", start + 60, 20, ANNOTATION)
        b.slice(cpu, "aten::_batch_norm", start, 5)
    found = find_steps(b.build())
    assert found.evidence is StepEvidence.ANNOTATION
    assert [(s.name, s.duration_ns) for s in found.steps] == [
        ("train_step 0", 100),
        ("train_step 1", 100),
        ("train_step 2", 90),
    ]


@pytest.mark.parametrize(
    "name", ["batch_norm", "BatchNorm", "batchnorm", "batch_norm step", "step_end", "stepping"]
)
def test_ranges_that_only_begin_like_a_step_are_none(tmp_path: Path, name: str) -> None:
    b = TraceBuilder(tmp_path / "t")
    cpu = b.thread()
    for number in range(5):
        b.slice(cpu, name, 100 * number, 90, ANNOTATION)
    assert find_steps(b.build()).steps == ()


@pytest.mark.parametrize(
    "name", ["step", "step {}", "train_step", "iteration#{}", "batch 7{}", "Step_{}", "iter={}/9"]
)
def test_names_of_steps(tmp_path: Path, name: str) -> None:
    b = TraceBuilder(tmp_path / "t")
    cpu = b.thread()
    for number in range(3):
        b.slice(cpu, name.format(number), 100 * number, 90, ANNOTATION)
    assert [step.duration_ns for step in find_steps(b.build()).steps] == [100, 100, 90]


@pytest.mark.parametrize(
    "args", ['{"n":01}', '{"n":+1}', '{"n":INF}', '{"n":' + "[" * 100_000 + "]" * 100_000 + "}"]
)
def test_steps_are_found_whatever_their_args_hold(tmp_path: Path, args: str) -> None:
    step = (
        '{"ph":"X","cat":"user_annotation","name":"ProfilerStep#%d","pid":1,"tid":1,'
        '"ts":%d,"dur":9,"args":%s}'
    )
    kernel = (
        '{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":3,"dur":2,'
        '"args":{"device":0,"stream":7,"grid":%s,"block":[1,1,1]}}'
    )
    op = (
        '{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":1,"tid":1,"ts":1,"dur":2,'
        '"args":{"Input Dims":%s}}'
    )
    value = args[5:-1]
    events = [step % (1, 0, args), step % (2, 10, args), kernel % value, op % value]
    path = tmp_path / "trace.json"
    path.write_text('{"schemaVersion":1,"traceEvents":[' + ",".join(events) + "]}")
    profile = Profile((open_path(path),))
    assert [row.duration_ns for row in summarize(profile).steps] == [10_000, 9_000]
    assert [row.sum_ns for row in kernels(profile).rows] == [2_000]
    assert [row.calls for row in ops(profile, "shape").rows if row.name == "aten::mm"] == [1]
    json.dumps([ops(profile, "shape").to_json(), kernels(profile).to_json()])


def test_a_range_that_never_finished_is_no_step(tmp_path: Path) -> None:
    b = TraceBuilder(tmp_path / "t")
    cpu = b.thread()
    b.slice(cpu, "ProfilerStep#1", 0, 100, ANNOTATION, finished="true")
    b.slice(cpu, "ProfilerStep#2", 100, 900, ANNOTATION, finished="false")
    assert [step.name for step in find_steps(b.build()).steps] == ["ProfilerStep#1"]


def test_a_single_named_range_is_no_step(tmp_path: Path) -> None:
    b = TraceBuilder(tmp_path / "t")
    b.slice(b.thread(), "step", 0, 100, ANNOTATION)
    found = find_steps(b.build())
    assert (found.steps, found.evidence) == ((), None)


def test_from_optimizer_to_optimizer(tmp_path: Path) -> None:
    b = TraceBuilder(tmp_path / "t")
    cpu = b.thread()
    for end in (100, 250, 390):
        b.slice(cpu, "Optimizer.step#Adam.step", end - 20, 20, ANNOTATION)
    found = find_steps(b.build())
    assert found.evidence is StepEvidence.OPTIMIZER
    assert [(s.name, s.start_ns, s.duration_ns) for s in found.steps] == [
        ("step 2", 100, 150),
        ("step 3", 250, 140),
    ]


def test_steps_known_from_the_device_only(tmp_path: Path) -> None:
    b = TraceBuilder(tmp_path / "t")
    gpu = b.stream()
    for number, start in ((1, 0), (2, 50)):
        b.slice(gpu, f"ProfilerStep#{number}", start, 40, SliceKind.DEVICE_ANNOTATION)
        b.slice(gpu, "k", start, 30, SliceKind.KERNEL)
    trace = b.build()
    assert find_steps(trace).evidence is StepEvidence.DEVICE_ANNOTATION
    assert [r.device_ns for r in summarize_steps(trace)] == [30, 30]


def test_without_device_work_device_time_is_absent(tmp_path: Path) -> None:
    b = TraceBuilder(tmp_path / "t")
    b.slice(b.thread(), "ProfilerStep#1", 0, 100, ANNOTATION)
    document = steps(Profile((b.build(),))).to_json()
    assert document == {
        "schema": 1,
        "steps": [
            {
                "source": 0,
                "rank": None,
                "name": "ProfilerStep#1",
                "start_ns": 0,
                "duration_ns": 100,
                "device_ns": None,
                "device_ns_basis": None,
                "device_ns_by_launch": None,
                "device_ns_by_clock": None,
                "recorded_ns": 100,
                "evidence": "profiler-step",
            }
        ],
    }


def test_times_outside_of_steps(tmp_path: Path) -> None:
    import numpy as np

    b = TraceBuilder(tmp_path / "t")
    cpu = b.thread()
    b.slice(cpu, "ProfilerStep#1", 10, 10, ANNOTATION)
    b.slice(cpu, "ProfilerStep#2", 20, 10, ANNOTATION)
    found = find_steps(b.build())
    times = np.array([9, 10, 19, 20, 29, 30])
    assert found.index_of(times).tolist() == [-1, 0, 0, 1, 1, -1]
