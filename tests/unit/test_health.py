"""Each check of health: a trace that fires it, and the values it names."""

from __future__ import annotations

from pathlib import Path

from trnscope.analysis.health import HealthFinding, HealthReport, health
from trnscope.model.health import Health, HealthWarning
from trnscope.model.kinds import SliceKind
from trnscope.store.builder import TraceBuilder
from trnscope.store.profile import Profile
from trnscope.store.reader import Trace

RUNTIME, KERNEL = SliceKind.RUNTIME, SliceKind.KERNEL


def of(*traces: Trace) -> HealthReport:
    return health(Profile(traces))


def codes(report: HealthReport) -> list[str]:
    return [warning.code for warning in report.warnings]


def named(report: HealthReport, code: str) -> HealthFinding:
    (finding,) = [warning for warning in report.warnings if warning.code == code]
    return finding


def launch(b: TraceBuilder, cpu: int, gpu: int, number: int, at: int, start: int) -> None:
    b.slice(cpu, "cudaLaunchKernel", at, 1, RUNTIME, correlation=number)
    b.slice(gpu, "k", start, 10, KERNEL, correlation=number)


def good(b: TraceBuilder) -> tuple[int, int]:
    """A step with one launched kernel: nothing to complain about."""
    cpu, gpu = b.thread(), b.stream()
    b.slice(cpu, "ProfilerStep#1", 0, 1000, SliceKind.ANNOTATION)
    launch(b, cpu, gpu, 1, 5, 20)
    return cpu, gpu


def test_a_whole_trace_has_no_warnings(tmp_path: Path) -> None:
    b = TraceBuilder(tmp_path / "t")
    good(b)
    assert of(b.build()).to_json() == {
        "schema": 1,
        "health": {
            "complete": True,
            "num_events_read": 3,
            "num_events_repaired": 0,
            "num_events_unreadable": 0,
            "warnings": [],
        },
    }


def test_damage_found_in_reading_comes_first_and_is_kept(tmp_path: Path) -> None:
    b = TraceBuilder(tmp_path / "t")
    _, gpu = good(b)
    b.slice(gpu, "lost", 500, 10, KERNEL)
    damage = Health(False, 4, 1, 2, (HealthWarning("truncated", "cut off at byte 99", 1),))
    report = of(b.build(damage))
    assert (report.complete, report.num_events_repaired, report.num_events_unreadable) == (
        False,
        1,
        2,
    )
    assert codes(report) == ["truncated", "unlinked-device-work"]
    assert report.warnings[0].message == "cut off at byte 99"
    assert report.warnings[0].consequence is not None


def test_unlinked_work_names_its_share(tmp_path: Path) -> None:
    b = TraceBuilder(tmp_path / "t")
    _, gpu = good(b)
    b.slice(gpu, "lost", 500, 30, KERNEL)
    finding = named(of(b.build()), "unlinked-device-work")
    assert finding.count == 1
    assert finding.message == (
        "1 of 2 pieces of device work without a launch in the trace: 30 ns, 75.0 % of the summed "
        "device time"
    )


def test_device_work_launched_before_recording(tmp_path: Path) -> None:
    b = TraceBuilder(tmp_path / "t")
    _, gpu = good(b)
    b.slice(gpu, "carry_over", 1, 3, KERNEL)
    b.slice(gpu, "lost", 500, 30, KERNEL)
    finding = named(of(b.build()), "device-work-carried-over")
    assert (finding.count, "began: 1 (3 ns)" in finding.message) == (1, True)


def test_device_work_before_the_first_host_event(tmp_path: Path) -> None:
    b = TraceBuilder(tmp_path / "t")
    _, gpu = good(b)
    b.slice(gpu, "carry_over", -20, 30, KERNEL)
    b.slice(gpu, "late", 1001, 30, KERNEL)
    assert named(of(b.build()), "device-work-outside-host-window").count == 2


def test_host_events_missing_at_the_start_of_the_first_step(tmp_path: Path) -> None:
    b = TraceBuilder(tmp_path / "t")
    cpu, gpu = b.thread(), b.stream()
    b.slice(cpu, "ProfilerStep#1", 0, 1000, SliceKind.ANNOTATION)
    b.slice(gpu, "lost", 100, 50, KERNEL)
    launch(b, cpu, gpu, 1, 300, 320)
    finding = named(of(b.build()), "host-events-missing-at-start")
    assert finding.count == 1
    assert finding.message.startswith("the first 300 ns of ProfilerStep#1 without host events")


def test_work_carried_over_is_no_missing_start(tmp_path: Path) -> None:
    b = TraceBuilder(tmp_path / "t")
    _, gpu = good(b)
    b.slice(gpu, "carry_over", 1, 2, KERNEL)
    assert "host-events-missing-at-start" not in codes(of(b.build()))


def test_no_steps_and_inferred_steps(tmp_path: Path) -> None:
    b = TraceBuilder(tmp_path / "a")
    b.slice(b.thread(), "aten::linear", 0, 5)
    assert codes(of(b.build())) == ["no-steps"]
    b = TraceBuilder(tmp_path / "b")
    cpu = b.thread()
    for start in (0, 50):
        b.slice(cpu, "train_step", start, 40, SliceKind.ANNOTATION)
    assert named(of(b.build()), "steps-inferred").count == 2


def test_launches_without_work(tmp_path: Path) -> None:
    b = TraceBuilder(tmp_path / "a")
    cpu, _ = good(b)
    b.slice(cpu, "cudaLaunchKernel", 40, 1, RUNTIME, correlation=2)
    b.slice(cpu, "cudaLaunchKernel", 50, 1, RUNTIME, correlation=3)
    finding = named(of(b.build()), "launches-without-work")
    assert (finding.count, "captured into a graph" in finding.message) == (2, True)
    b = TraceBuilder(tmp_path / "b")
    cpu = b.thread()
    b.slice(cpu, "ProfilerStep#1", 0, 100, SliceKind.ANNOTATION)
    b.slice(cpu, "hipLaunchKernel", 40, 1, RUNTIME)
    assert codes(of(b.build())) == ["no-device-work"]


def test_fills_of_no_bytes_are_told_apart(tmp_path: Path) -> None:
    b = TraceBuilder(tmp_path / "t")
    cpu, _ = good(b)
    b.slice(cpu, "cudaMemsetAsync", 40, 1, RUNTIME, correlation=2)
    report = of(b.build())
    assert codes(report) == ["copies-without-work"]
    assert (report.warnings[0].count, report.warnings[0].consequence) == (1, None)


def test_clocks_that_disagree(tmp_path: Path) -> None:
    b = TraceBuilder(tmp_path / "t")
    cpu, gpu = good(b)
    launch(b, cpu, gpu, 2, 80, 73)
    finding = named(of(b.build()), "device-work-before-launch")
    assert (finding.count, "by up to 7 ns" in finding.message) == (1, True)


def test_work_that_overlaps_on_its_stream(tmp_path: Path) -> None:
    b = TraceBuilder(tmp_path / "t")
    cpu, gpu = good(b)
    launch(b, cpu, gpu, 2, 10, 26)
    finding = named(of(b.build()), "overlap-on-stream")
    assert (finding.count, "by up to 4 ns" in finding.message) == (1, True)


def test_empty_trace(tmp_path: Path) -> None:
    assert codes(of(TraceBuilder(tmp_path / "t").build())) == ["no-slices"]


def test_files_that_are_no_ranks(tmp_path: Path) -> None:
    traces = []
    for name in ("a", "b"):
        b = TraceBuilder(tmp_path / name)
        good(b)
        traces.append(b.build())
    assert codes(of(*traces)) == ["ranks-unknown"]


def test_files_that_are_ranks_name_the_file(tmp_path: Path) -> None:
    traces = []
    for rank in (0, 1):
        b = TraceBuilder(tmp_path / str(rank), rank=rank)
        _, gpu = good(b)
        if rank == 1:
            b.slice(gpu, "lost", 500, 30, KERNEL)
        traces.append(b.build())
    (finding,) = of(*traces).warnings
    assert (finding.source, finding.code) == (1, "unlinked-device-work")
    assert finding.message.startswith("built-by-hand: 1 of 2")
