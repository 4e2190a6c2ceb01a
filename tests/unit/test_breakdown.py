"""Steps split into parts that add up; numbers computed by hand."""

from __future__ import annotations

from pathlib import Path

from trnscope.analysis.breakdown import WHOLE_SPAN, BreakdownBasis, BreakdownRow, breakdown
from trnscope.model.kinds import SliceKind
from trnscope.store.builder import TraceBuilder
from trnscope.store.profile import Profile
from trnscope.store.reader import Trace


def rows_of(trace: Trace) -> tuple[BreakdownRow, ...]:
    return breakdown(Profile((trace,))).rows


def parts_of(row: BreakdownRow) -> dict[str, int]:
    return {part.key: part.duration_ns for part in row.parts}


def launch(b: TraceBuilder, cpu: int, gpu: int, number: int, at: int, run: tuple[int, int]) -> None:
    """One launch of 1 ns at ``at`` and its kernel over ``run`` = (start, end)."""
    b.slice(cpu, "cudaLaunchKernel", at, 1, SliceKind.RUNTIME, correlation=number)
    b.slice(gpu, "k", run[0], run[1] - run[0], SliceKind.KERNEL, correlation=number)


def test_idle_time_by_cause(tmp_path: Path) -> None:
    b = TraceBuilder(tmp_path / "t")
    cpu, gpu = b.thread(), b.stream()
    b.slice(cpu, "ProfilerStep#1", 0, 100, SliceKind.ANNOTATION)
    launch(b, cpu, gpu, 1, 5, (10, 30))
    launch(b, cpu, gpu, 2, 6, (33, 40))  # launched while 1 ran: 3 ns of launch wait
    launch(b, cpu, gpu, 3, 50, (55, 60))  # launched in the pause [40, 55]: host wait
    b.slice(gpu, "lost", 70, 10, SliceKind.KERNEL)  # no launch known: the pause [60, 70] is other
    (row,) = rows_of(b.build())
    assert parts_of(row) == {
        "compute": 20 + 7 + 5 + 10,
        "exposed_communication": 0,
        "exposed_memcpy": 0,
        "host_wait": 10 + 15 + 20,  # before the first, [40, 55], and after the last
        "launch_wait": 3,
        "other": 10,
    }
    assert sum(parts_of(row).values()) == row.duration_ns == 100


def test_work_waits_that_was_launched_as_the_device_fell_idle(tmp_path: Path) -> None:
    """A launch at the very end of the busy stretch found the device idle."""
    b = TraceBuilder(tmp_path / "t")
    cpu, gpu = b.thread(), b.stream()
    b.slice(cpu, "ProfilerStep#1", 0, 40, SliceKind.ANNOTATION)
    launch(b, cpu, gpu, 1, 0, (0, 20))
    launch(b, cpu, gpu, 2, 20, (25, 40))
    (row,) = rows_of(b.build())
    assert (parts_of(row)["host_wait"], parts_of(row)["launch_wait"]) == (5, 0)


def test_the_earliest_launch_ends_a_pause(tmp_path: Path) -> None:
    b = TraceBuilder(tmp_path / "t")
    cpu, seven, eight = b.thread(), b.stream(stream=7), b.stream(stream=8)
    b.slice(cpu, "ProfilerStep#1", 0, 40, SliceKind.ANNOTATION)
    launch(b, cpu, seven, 1, 0, (0, 10))
    launch(b, cpu, seven, 2, 15, (20, 40))
    launch(b, cpu, eight, 3, 5, (20, 30))  # was waiting all through [10, 20]
    (row,) = rows_of(b.build())
    assert (parts_of(row)["host_wait"], parts_of(row)["launch_wait"]) == (0, 10)


def test_exposed_parts_do_not_count_an_instant_twice(tmp_path: Path) -> None:
    b = TraceBuilder(tmp_path / "t")
    cpu, seven, eight, nine = b.thread(), *(b.stream(stream=s) for s in (7, 8, 9))
    b.slice(cpu, "ProfilerStep#1", 0, 100, SliceKind.ANNOTATION)
    b.slice(seven, "gemm", 0, 40, SliceKind.KERNEL)
    b.slice(eight, "ncclDevKernel", 20, 50, SliceKind.COLLECTIVE)
    b.slice(nine, "Memcpy HtoD", 30, 50, SliceKind.MEMCPY)
    (row,) = rows_of(b.build())
    assert parts_of(row) == {
        "compute": 40,
        "exposed_communication": 30,  # [40, 70]
        "exposed_memcpy": 10,  # [70, 80]
        "host_wait": 0,
        "launch_wait": 0,
        "other": 20,  # nothing has a launch, so no cause is known
    }


def test_after_the_last_work_a_lost_launch_ends_what_is_known(tmp_path: Path) -> None:
    b = TraceBuilder(tmp_path / "t")
    cpu, gpu = b.thread(), b.stream()
    b.slice(cpu, "ProfilerStep#1", 0, 100, SliceKind.ANNOTATION)
    launch(b, cpu, gpu, 1, 0, (0, 50))
    b.slice(cpu, "cudaLaunchKernel", 70, 1, SliceKind.RUNTIME, correlation=2)
    (row,) = rows_of(b.build())
    assert (parts_of(row)["host_wait"], parts_of(row)["other"]) == (20, 30)


def test_in_a_pause_a_lost_launch_ends_what_is_known(tmp_path: Path) -> None:
    b = TraceBuilder(tmp_path / "t")
    cpu, gpu = b.thread(), b.stream()
    b.slice(cpu, "ProfilerStep#1", 0, 100, SliceKind.ANNOTATION)
    launch(b, cpu, gpu, 1, 0, (0, 50))
    b.slice(cpu, "cudaLaunchKernel", 70, 1, SliceKind.RUNTIME, correlation=9)
    b.slice(cpu, "cudaMemsetAsync", 60, 1, SliceKind.RUNTIME, correlation=8)  # of no bytes
    launch(b, cpu, gpu, 2, 85, (90, 100))
    (row,) = rows_of(b.build())
    assert (parts_of(row)["host_wait"], parts_of(row)["other"]) == (20, 20)


def test_a_pause_over_a_step_border_is_split_there(tmp_path: Path) -> None:
    b = TraceBuilder(tmp_path / "t", rank=1)
    cpu, gpu = b.thread(), b.stream()
    b.slice(cpu, "ProfilerStep#1", 0, 51, SliceKind.ANNOTATION)
    b.slice(cpu, "ProfilerStep#2", 50, 50, SliceKind.ANNOTATION)
    launch(b, cpu, gpu, 1, 0, (0, 40))
    launch(b, cpu, gpu, 2, 60, (65, 100))
    first, second = rows_of(b.build())
    assert (first.name, first.duration_ns, second.duration_ns) == ("ProfilerStep#1", 50, 50)
    assert (parts_of(first)["host_wait"], parts_of(second)["host_wait"]) == (10, 15)
    assert second.to_json() == {
        "source": 0,
        "rank": 1,
        "name": "ProfilerStep#2",
        "device": "cuda:0",
        "start_ns": 50,
        "duration_ns": 50,
        "compute_ns": 35,
        "exposed_communication_ns": 0,
        "exposed_memcpy_ns": 0,
        "host_wait_ns": 15,
        "launch_wait_ns": 0,
        "other_ns": 0,
    }


def test_each_device_has_its_own_row(tmp_path: Path) -> None:
    b = TraceBuilder(tmp_path / "t")
    cpu = b.thread()
    b.slice(cpu, "ProfilerStep#1", 0, 100, SliceKind.ANNOTATION)
    for device in (0, 1):
        launch(b, cpu, b.stream(device=device), device + 1, 0, (0, 30 + device))
    rows = rows_of(b.build())
    assert [(r.device.label if r.device else None, parts_of(r)["compute"]) for r in rows] == [
        ("cuda:0", 30),
        ("cuda:1", 31),
    ]


def test_without_steps_the_whole_trace_is_split(tmp_path: Path) -> None:
    b = TraceBuilder(tmp_path / "t")
    cpu, gpu = b.thread(), b.stream()
    b.slice(cpu, "aten::mm", 10, 5)
    launch(b, cpu, gpu, 1, 11, (20, 50))
    (row,) = rows_of(b.build())
    assert (row.name, row.start_ns, row.duration_ns) == (WHOLE_SPAN, 10, 40)
    assert (parts_of(row)["compute"], parts_of(row)["host_wait"]) == (30, 10)


def test_cpu_only_step_by_what_its_thread_did(tmp_path: Path) -> None:
    b = TraceBuilder(tmp_path / "t")
    cpu, helper = b.thread(tid=100), b.thread(tid=200)
    b.slice(cpu, "ProfilerStep#1", 0, 200, SliceKind.ANNOTATION)
    loader = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
    b.slice(cpu, loader, 10, 30, SliceKind.ANNOTATION)
    b.slice(cpu, "aten::stack", 20, 10)  # inside the loader
    b.slice(cpu, "aten::linear", 50, 20)
    b.slice(cpu, "aten::addmm", 55, 10)
    b.slice(cpu, "autograd::engine::evaluate_function: AddmmBackward0", 80, 25)
    b.slice(cpu, "aten::mm", 85, 15)
    b.slice(cpu, "gloo:all_reduce", 105, 5, SliceKind.ANNOTATION)
    b.slice(cpu, "Optimizer.step#SGD.step", 120, 30, SliceKind.ANNOTATION)
    b.slice(cpu, "aten::add_", 125, 5)
    b.slice(cpu, "cudaDeviceSynchronize", 155, 5, SliceKind.RUNTIME)
    b.slice(helper, "aten::copy_", 140, 40)
    result = breakdown(Profile((b.build(),)))
    assert result.basis is BreakdownBasis.HOST
    (row,) = result.rows
    assert row.device is None
    assert parts_of(row) == {
        "data_loading": 30,
        "communication": 5,
        "optimizer": 30,
        "backward": 25,
        "operators": 20,
        "runtime": 5,
        "other_threads": 25,  # [150, 155] + [160, 180]
        "other": 200 - 140,
    }
    assert [(p.key, p.duration_ns) for p in result.totals()] == list(parts_of(row).items())


def test_empty_trace_has_no_rows(tmp_path: Path) -> None:
    result = breakdown(Profile((TraceBuilder(tmp_path / "t").build(),)))
    assert result.to_json() == {"schema": 1, "basis": None, "rows": []}
