"""Time by op on small traces with hand-computed answers; cases are those of shared/cases."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from trnscope.analysis.ops import GroupBy, OpRow, OpsTable, ops
from trnscope.errors import UsageError
from trnscope.model.kinds import SliceKind, TrackKind
from trnscope.model.track import Track
from trnscope.store.builder import TraceBuilder
from trnscope.store.profile import Profile
from trnscope.store.reader import Trace

US = 1_000


@pytest.fixture
def new_trace(tmp_path: Path) -> Callable[[], TraceBuilder]:
    numbers = iter(range(100))
    return lambda: TraceBuilder(tmp_path / str(next(numbers)))


@pytest.fixture
def b(new_trace: Callable[[], TraceBuilder]) -> TraceBuilder:
    return new_trace()


def table(trace: Trace, group_by: str = "name", **options: bool | int) -> OpsTable:
    return ops(Profile((trace,)), group_by, **options)  # type: ignore[arg-type]


def row(result: OpsTable, name: str, **key: object) -> OpRow:
    (found,) = (
        r
        for r in result.rows
        if r.name == name and all(getattr(r.key, k) == v for k, v in key.items())
    )
    return found


def self_cpu(result: OpsTable) -> dict[str, int]:
    return {r.name: r.self_cpu_ns for r in result.rows}


class TestHostTime:
    def test_cpu_only_trace_has_no_device_columns(self, b: TraceBuilder) -> None:
        """Case 40."""
        cpu = b.thread()
        b.slice(cpu, "aten::linear", 0, 100)
        b.slice(cpu, "aten::addmm", 10, 60)
        b.slice(cpu, "aten::t", 2, 5)
        result = table(b.build())
        assert self_cpu(result) == {"aten::linear": 35, "aten::addmm": 60, "aten::t": 5}
        assert not result.has_device
        assert result.to_json() == {
            "schema": 1,
            "ops": [
                {
                    "name": name,
                    "calls": 1,
                    "self_cpu_ns": self_ns,
                    "cpu_total_ns": total_ns,
                    "self_device_ns": None,
                    "device_total_ns": None,
                }
                for name, self_ns, total_ns in (
                    ("aten::addmm", 60, 60),
                    ("aten::linear", 35, 100),
                    ("aten::t", 5, 5),
                )
            ],
            "unattributed_device_ns": None,
        }

    def test_runtime_call_is_a_child_of_the_op(self, b: TraceBuilder) -> None:
        """Case 07: 100 less the one child of known duration."""
        cpu, gpu = b.thread(), b.stream()
        b.slice(cpu, "aten::linear", 1000, 100)
        b.unfinished(cpu, "aten::addmm", 1010)
        b.slice(cpu, "cudaLaunchKernel", 1020, 5, SliceKind.RUNTIME, correlation=1)
        b.unfinished(cpu, "aten::nodur", 1095)
        b.slice(gpu, "gemm", 1030, 60, SliceKind.KERNEL, correlation=1)
        result = table(b.build())
        assert self_cpu(result) == {"aten::linear": 95, "cudaLaunchKernel": 5}
        assert row(result, "aten::linear").cpu_total_ns == 100
        assert row(result, "aten::linear").self_device_ns == 60

    def test_zero_length_and_identical_intervals(self, b: TraceBuilder) -> None:
        """Case 20: the earlier of two identical intervals is the parent."""
        cpu = b.thread()
        for name, start, dur in (
            ("child_same", 1000, 10),
            ("zero_at_start", 1000, 0),
            ("parent", 1000, 10),
            ("zero_at_end", 1010, 0),
            ("next", 1010, 5),
        ):
            b.slice(cpu, name, start, dur)
        assert self_cpu(table(b.build())) == {
            "child_same": 0,
            "parent": 10,
            "zero_at_start": 0,
            "zero_at_end": 0,
            "next": 5,
        }

    def test_totals_of_a_recursive_op_add_up_as_in_torch(self, b: TraceBuilder) -> None:
        cpu = b.thread()
        b.slice(cpu, "f", 0, 100)
        b.slice(cpu, "f", 10, 30)
        b.slice(cpu, "f", 50, 20)
        result = row(table(b.build()), "f")
        assert (result.calls, result.self_cpu_ns, result.cpu_total_ns) == (3, 100, 150)

    def test_only_child_of_the_same_name_is_one_call_with_its_parent(self, b: TraceBuilder) -> None:
        # f > f > f > g: three become one; it owns 100 - 10.
        cpu = b.thread()
        b.slice(cpu, "f", 0, 100)
        b.slice(cpu, "f", 10, 80)
        b.slice(cpu, "f", 20, 60)
        b.slice(cpu, "g", 30, 10)
        result = table(b.build())
        assert (row(result, "f").calls, row(result, "f").cpu_total_ns) == (1, 100)
        assert self_cpu(result) == {"f": 90, "g": 10}

    @pytest.mark.parametrize(("sibling_ns", "calls"), [(5, 2), (0, 2), (None, 1)])
    def test_a_sibling_of_any_length_keeps_calls_apart(
        self, b: TraceBuilder, sibling_ns: int | None, calls: int
    ) -> None:
        cpu = b.thread()
        b.slice(cpu, "f", 0, 100)
        b.slice(cpu, "f", 10, 20)
        if sibling_ns is not None:
            b.slice(cpu, "g", 50, sibling_ns)
        assert row(table(b.build()), "f").calls == calls

    @pytest.mark.parametrize(("num_empty", "calls"), [(1, 1), (2, 3)])
    def test_empty_only_child_is_merged_too(
        self, b: TraceBuilder, num_empty: int, calls: int
    ) -> None:
        cpu = b.thread()
        b.slice(cpu, "f", 0, 100)
        for at in range(num_empty):
            b.slice(cpu, "f", 10 + at, 0)
        assert row(table(b.build()), "f").calls == calls

    def test_merged_call_moves_its_own_time_to_the_row_of_its_parent(self, b: TraceBuilder) -> None:
        cpu = b.thread()
        b.slice(cpu, "f", 0, 100, input_dims="[[1]]")
        b.slice(cpu, "f", 10, 20, input_dims="[[2]]")
        (only,) = table(b.build(), "shape").rows
        assert (only.input_shapes, only.self_cpu_ns, only.calls) == ("[[1]]", 100, 1)

    def test_annotation_and_op_of_one_name_are_two_rows(self, b: TraceBuilder) -> None:
        cpu = b.thread()
        b.slice(cpu, "work", 0, 10)
        b.slice(cpu, "work", 20, 30, SliceKind.ANNOTATION)
        result = table(b.build())
        assert row(result, "work", is_annotation=False).self_cpu_ns == 10
        assert row(result, "work", is_annotation=True).self_cpu_ns == 30

    def test_steps_are_one_row(self, b: TraceBuilder) -> None:
        cpu = b.thread()
        b.slice(cpu, "ProfilerStep#1", 0, 10, SliceKind.ANNOTATION)
        b.slice(cpu, "ProfilerStep#2", 10, 15, SliceKind.ANNOTATION)
        (step,) = table(b.build()).rows
        assert (step.name, step.calls, step.cpu_total_ns) == ("ProfilerStep*", 2, 25)

    def test_utility_ops_are_not_listed_and_their_time_stays_around_them(
        self, b: TraceBuilder
    ) -> None:
        cpu = b.thread()
        b.slice(cpu, "aten::add", 0, 100)
        b.slice(cpu, "aten::is_leaf", 10, 20)
        b.slice(cpu, "aten::mul", 12, 3)
        assert self_cpu(table(b.build())) == {"aten::add": 97, "aten::mul": 3}

    def test_asynchronous_collective_has_a_total_and_no_own_time(self, b: TraceBuilder) -> None:
        # It ends on another thread: what follows inside its span is not its child.
        cpu = b.thread()
        b.slice(cpu, "c10d::allreduce_", 0, 50)
        b.slice(cpu, "gloo:all_reduce", 10, 200, SliceKind.ANNOTATION)
        b.slice(cpu, "aten::empty", 20, 10)
        b.slice(cpu, "aten::add", 60, 40)
        result = table(b.build())
        assert self_cpu(result) == {
            "c10d::allreduce_": 40,
            "gloo:all_reduce": 0,
            "aten::empty": 10,
            "aten::add": 40,
        }
        assert row(result, "gloo:all_reduce").cpu_total_ns == 200

    def test_call_that_never_closed_ends_with_the_profiler(self, b: TraceBuilder) -> None:
        cpu = b.thread()
        span = b.track(Track(TrackKind.PROFILER, "Spans", "PyTorch Profiler"))
        b.slice(span, "PyTorch Profiler (0)", 0, 100, SliceKind.PROFILER)
        b.slice(cpu, "outer", 5, 90, SliceKind.ANNOTATION)
        b.slice(cpu, "open", 10, 400, SliceKind.ANNOTATION, finished="false")
        b.slice(cpu, "aten::mm", 20, 30)
        result = table(b.build())
        assert self_cpu(result) == {"outer": 60, "open": 0, "aten::mm": 30}
        assert row(result, "open").cpu_total_ns == 90

    def test_overlapping_siblings_both_leave_the_parent_as_in_torch(self, b: TraceBuilder) -> None:
        # A [10, 60] and B [40, 70] overlap by 20: 100 - 50 - 30.
        cpu = b.thread()
        b.slice(cpu, "P", 0, 100)
        b.slice(cpu, "A", 10, 50)
        b.slice(cpu, "B", 40, 30)
        assert self_cpu(table(b.build())) == {"P": 20, "A": 50, "B": 30}

    def test_own_time_is_never_negative(self, b: TraceBuilder) -> None:
        # torch says 100 - 80 - 80 = -60; 10 ns of P are covered by no child.
        cpu = b.thread()
        b.slice(cpu, "P", 0, 100)
        b.slice(cpu, "A", 5, 80)
        b.slice(cpu, "B", 15, 80)
        assert self_cpu(table(b.build()))["P"] == 10

    def test_same_name_on_two_threads_is_no_recursion(self, b: TraceBuilder) -> None:
        one, two = b.thread(tid=1), b.thread(tid=2)
        b.slice(one, "f", 0, 100)
        b.slice(two, "f", 10, 80)
        result = row(table(b.build()), "f")
        assert (result.calls, result.self_cpu_ns, result.cpu_total_ns) == (2, 180, 180)

    def test_several_ranks_are_added_up(self, new_trace: Callable[[], TraceBuilder]) -> None:
        traces = []
        for dur in (10, 20):
            b = new_trace()
            b.slice(b.thread(), "aten::mm", 0, dur)
            traces.append(b.build())
        (only,) = ops(Profile(tuple(traces))).rows
        assert (only.calls, only.cpu_total_ns) == (2, 30)

    def test_device_time_is_absent_where_no_trace_of_an_op_has_any(
        self, new_trace: Callable[[], TraceBuilder]
    ) -> None:
        host, device = new_trace(), new_trace()
        for name in ("aten::mm", "aten::add"):
            host.slice(host.thread(), name, 0, 10)
        cpu, gpu = device.thread(), device.stream()
        device.slice(cpu, "aten::mm", 0, 10)
        device.slice(cpu, "cudaLaunchKernel", 5, 2, SliceKind.RUNTIME, correlation=1)
        device.slice(gpu, "k", 20, 7, SliceKind.KERNEL, correlation=1)
        device.slice(cpu, "aten::sum", 40, 10)
        found = ops(Profile((host.build(), device.build()))).rows
        assert {r.name: (r.self_device_ns, r.device_total_ns) for r in found} == {
            "aten::mm": (7, 7),
            "aten::sum": (0, 0),
            "cudaLaunchKernel": (0, 0),
            "aten::add": (None, None),
        }

    def test_trace_without_slices(self, b: TraceBuilder) -> None:
        result = table(b.build())
        assert result.rows == ()
        assert result.self_cpu_ns == 0


class TestPythonFrames:
    def test_recursion_counts_the_outermost_frame(self, b: TraceBuilder) -> None:
        """Case 19."""
        cpu = b.thread()
        for name, start, end in (("f", 0, 100), ("f", 10, 90), ("g", 20, 50), ("f", 55, 75)):
            b.slice(cpu, name, start, end - start, SliceKind.PYTHON)
        result = table(b.build())
        f, g = row(result, "f"), row(result, "g")
        assert (f.calls, f.cpu_total_ns, f.self_cpu_ns) == (3, 100, 70)
        assert (g.calls, g.cpu_total_ns, g.self_cpu_ns) == (1, 30, 30)

    def test_frames_that_follow_each_other_are_no_recursion(self, b: TraceBuilder) -> None:
        cpu = b.thread()
        b.slice(cpu, "f", 0, 10, SliceKind.PYTHON)
        b.slice(cpu, "f", 10, 10, SliceKind.PYTHON)
        b.slice(cpu, "f", 20, 0, SliceKind.PYTHON)
        assert row(table(b.build()), "f").cpu_total_ns == 20

    def test_other_slices_of_a_foreign_writer_are_listed(self, b: TraceBuilder) -> None:
        """Case 16."""
        one, two = b.thread(1, 1), b.thread(1, 2)
        b.slice(one, "step", 0, 100, SliceKind.OTHER)
        b.slice(one, "fwd", 10, 30, SliceKind.OTHER)
        b.slice(one, "bwd", 50, 40, SliceKind.OTHER)
        b.slice(two, "other", 20, 10, SliceKind.OTHER)
        result = table(b.build())
        assert self_cpu(result) == {"step": 30, "fwd": 30, "bwd": 40, "other": 10}

    @pytest.mark.parametrize(
        ("python", "expected"),
        [
            (True, {"train.py(1): main": 30, "step": 10, "cb.py(9): hook": 15, "aten::mm": 45}),
            (False, {"step": 25, "aten::mm": 45}),
        ],
    )
    def test_frames_are_rows_or_their_time_goes_to_the_call_around_them(
        self, b: TraceBuilder, python: bool, expected: dict[str, int]
    ) -> None:
        cpu = b.thread()
        b.slice(cpu, "train.py(1): main", 0, 100, SliceKind.PYTHON)
        b.slice(cpu, "step", 10, 70, SliceKind.ANNOTATION)
        b.slice(cpu, "cb.py(9): hook", 20, 60, SliceKind.PYTHON)
        b.slice(cpu, "aten::mm", 30, 45)
        assert self_cpu(table(b.build(), python=python)) == expected

    def test_frame_between_calls_of_one_name_counts_as_a_call_only_when_listed(
        self, b: TraceBuilder
    ) -> None:
        cpu = b.thread()
        b.slice(cpu, "f", 0, 100)
        b.slice(cpu, "a.py(1): x", 10, 50, SliceKind.PYTHON)
        b.slice(cpu, "f", 20, 20)
        trace = b.build()
        assert row(table(trace, python=True), "f").calls == 2
        assert row(table(trace, python=False), "f").calls == 1
        assert row(table(trace, python=False), "f").self_cpu_ns == 100


class TestDeviceTime:
    def test_kernel_goes_once_to_the_op_and_not_to_the_launch(self, b: TraceBuilder) -> None:
        """Case 09."""
        cpu, gpu = b.thread(), b.stream()
        b.slice(cpu, "aten::softmax", 1000, 40, external_id=1)
        b.slice(cpu, "cudaLaunchKernel", 1010, 6, SliceKind.RUNTIME, correlation=55, external_id=1)
        b.slice(gpu, "softmax", 1020, 50, SliceKind.KERNEL, correlation=55, external_id=1)
        result = table(b.build())
        assert row(result, "aten::softmax").self_device_ns == 50
        assert row(result, "cudaLaunchKernel").self_device_ns == 0
        assert row(result, "cudaLaunchKernel").device_total_ns == 0
        assert sum(r.self_device_ns or 0 for r in result.rows) == 50
        assert (result.unattributed_device_ns, result.device_sum_ns) == (0, 50)

    def test_total_includes_what_descendants_launched(self, b: TraceBuilder) -> None:
        cpu, gpu = b.thread(), b.stream()
        b.slice(cpu, "step", 0, 100, SliceKind.ANNOTATION)
        b.slice(cpu, "aten::linear", 10, 60)
        b.slice(cpu, "aten::addmm", 20, 40)
        for at, correlation, dur in ((30, 1, 7), (65, 2, 5)):
            b.slice(cpu, "cudaLaunchKernel", at, 2, SliceKind.RUNTIME, correlation=correlation)
            b.slice(gpu, "k", 100 + at, dur, SliceKind.KERNEL, correlation=correlation)
        result = table(b.build())
        device = {r.name: (r.self_device_ns, r.device_total_ns) for r in result.rows}
        assert device == {
            "step": (0, 12),
            "aten::linear": (5, 12),
            "aten::addmm": (7, 7),
            "cudaLaunchKernel": (0, 0),
        }

    def test_backward_thread_counts_towards_the_annotation_that_called_it(
        self, b: TraceBuilder
    ) -> None:
        """Case 21."""
        main, engine, gpu = b.thread(tid=100), b.thread(tid=200), b.stream()
        annotation, runtime = SliceKind.ANNOTATION, SliceKind.RUNTIME
        b.slice(main, "ProfilerStep#5", 0, 1000, annotation)
        b.slice(main, "forward", 0, 400, annotation)
        b.slice(main, "aten::linear", 50, 100, sequence_number=7, forward_thread=0)
        b.slice(main, "backward", 400, 500, annotation)
        node = "autograd::engine::evaluate_function: AddmmBackward0"
        b.slice(engine, node, 450, 200, sequence_number=7, forward_thread=1)
        b.slice(main, "optimizer", 900, 100, annotation)
        for correlation, thread, at, dur in (
            (1, main, 100, 80),
            (2, engine, 500, 70),
            (3, engine, 560, 50),
            (4, main, 910, 30),
        ):
            b.slice(thread, "cudaLaunchKernel", at, 10, runtime, correlation=correlation)
            b.slice(gpu, f"k{correlation}", at + 50, dur, SliceKind.KERNEL, correlation=correlation)
        result = table(b.build())
        total = {r.name: r.device_total_ns for r in result.rows}
        assert total == {
            "ProfilerStep*": 230,
            "forward": 80,
            "aten::linear": 80,
            "backward": 120,
            node: 120,
            "optimizer": 30,
            "cudaLaunchKernel": 0,
        }
        assert result.unattributed_device_ns == 0
        assert sum(r.self_device_ns or 0 for r in result.rows) == 230

    def test_work_without_launch_stays_unattributed(self, b: TraceBuilder) -> None:
        """Case 25."""
        cpu, gpu = b.thread(), b.stream()
        b.slice(gpu, "carry_over", 980, 40, SliceKind.KERNEL, correlation=500)
        for at, correlation in ((998, 501), (1055, 502)):
            b.slice(cpu, "aten::mm", at, 50)
            b.slice(cpu, "cudaLaunchKernel", at + 2, 5, SliceKind.RUNTIME, correlation=correlation)
            b.slice(gpu, "gemm", at + 32, 20, SliceKind.KERNEL, correlation=correlation)
        result = table(b.build())
        assert row(result, "aten::mm").self_device_ns == 40
        assert result.unattributed_device_ns == 40
        assert result.device_sum_ns == 80

    def test_correlation_ids_beyond_2_to_53_stay_apart(self, b: TraceBuilder) -> None:
        """Case 32."""
        cpu, gpu = b.thread(), b.stream()
        for op, at, correlation, dur in (("A", 0, 2**53, 10), ("B", 100, 2**53 + 1, 30)):
            b.slice(cpu, op, at, 20)
            b.slice(cpu, "cudaLaunchKernel", at + 5, 5, SliceKind.RUNTIME, correlation=correlation)
            b.slice(gpu, "k", at + 30, dur, SliceKind.KERNEL, correlation=correlation)
        result = table(b.build())
        assert row(result, "A").self_device_ns == 10
        assert row(result, "B").self_device_ns == 30

    def test_all_sorts_of_device_work_count_and_annotations_do_not(self, b: TraceBuilder) -> None:
        cpu, gpu = b.thread(), b.stream()
        b.slice(cpu, "op", 0, 100)
        kinds = (SliceKind.KERNEL, SliceKind.COLLECTIVE, SliceKind.MEMCPY, SliceKind.MEMSET)
        for number, kind in enumerate(kinds, start=1):
            b.slice(cpu, "launch", number * 10, 2, SliceKind.RUNTIME, correlation=number)
            b.slice(gpu, "work", number * 100, 10**number, kind, correlation=number)
        b.slice(gpu, "range", 0, 9_999, SliceKind.DEVICE_ANNOTATION)
        b.slice(gpu, "sync", 0, 9_999, SliceKind.SYNC)
        result = table(b.build())
        assert row(result, "op").self_device_ns == 11_110
        assert result.device_sum_ns == 11_110

    def test_work_of_a_merged_call_counts_once(self, b: TraceBuilder) -> None:
        cpu, gpu = b.thread(), b.stream()
        b.slice(cpu, "f", 0, 100, external_id=1)
        b.slice(cpu, "f", 10, 80, external_id=2)
        b.slice(cpu, "launch", 20, 5, SliceKind.RUNTIME, correlation=1)
        b.slice(gpu, "k", 200, 50, SliceKind.KERNEL, correlation=1)
        f = row(table(b.build()), "f")
        assert (f.calls, f.self_device_ns, f.device_total_ns) == (1, 50, 50)


class TestGrouping:
    def test_by_shape_as_torch_groups(self, b: TraceBuilder) -> None:
        cpu = b.thread()
        b.slice(cpu, "aten::cat", 0, 1, input_dims="[[[2, 2], [3, 2]], []]")
        b.slice(cpu, "aten::cat", 10, 2, input_dims="[[[4, 2]], []]")
        b.slice(cpu, "aten::mm", 20, 4, input_dims="[[2,3],[3,4]]")
        b.slice(cpu, "aten::mm", 30, 8, input_dims="[[2, 3], [3, 4]]")
        b.slice(cpu, "aten::mm", 40, 16, input_dims="[[1, 1], [1, 1]]")
        b.slice(cpu, "range", 60, 32, SliceKind.ANNOTATION)
        rows = {(r.name, r.input_shapes): r.self_cpu_ns for r in table(b.build(), "shape").rows}
        assert rows == {
            ("aten::cat", "[[], []]"): 3,
            ("aten::mm", "[[2, 3], [3, 4]]"): 12,
            ("aten::mm", "[[1, 1], [1, 1]]"): 16,
            ("range", "[]"): 32,
        }

    def test_shapes_in_json_are_lists(self, b: TraceBuilder) -> None:
        b.slice(b.thread(), "aten::mm", 0, 1, input_dims="[[2,3],[]]")
        (only,) = table(b.build(), "shape").rows
        assert only.to_json()["input_shapes"] == [[2, 3], []]

    def test_shapes_that_were_not_recorded_are_absent(self, b: TraceBuilder) -> None:
        b.slice(b.thread(), "aten::mm", 0, 1)
        (only,) = table(b.build(), "shape").rows
        assert only.input_shapes is None
        assert "input_shapes" not in only.to_json()

    def test_by_stack(self, b: TraceBuilder) -> None:
        cpu = b.thread()
        b.slice(cpu, "main", 0, 100, SliceKind.PYTHON)
        b.slice(cpu, "layer", 10, 30, SliceKind.PYTHON)
        b.slice(cpu, "aten::mm", 20, 5)
        b.slice(cpu, "layer", 50, 30, SliceKind.PYTHON)
        b.slice(cpu, "aten::mm", 55, 7)
        b.slice(cpu, "aten::mm", 90, 3)
        trace = b.build()
        rows = {r.key.stack: r.self_cpu_ns for r in table(trace, "stack").rows}
        assert rows == {("layer", "main"): 12, ("main",): 3}
        nearest = {r.key.stack: r.calls for r in table(trace, "stack", stack_depth=1).rows}
        assert nearest == {("layer",): 2, ("main",): 1}

    def test_stacks_that_differ_in_an_address_alone_are_one(self, b: TraceBuilder) -> None:
        host = b.thread()
        for at, address in enumerate(("0x7f01a2b3c4d0", "0x55d0")):
            frame = f"<built-in method linear of builtin_function_or_method object at {address}>"
            b.slice(host, frame, 100 * at, 50, SliceKind.PYTHON)
            b.slice(host, "aten::linear", 100 * at + 10, 20)
            b.slice(host, "aten::mm", 100 * at + 60, 20, call_stack=f"a.py(1): f;<o at {address}>")
        rows = {row.name: row for row in table(b.build(), "stack").rows}
        assert len(rows) == 2
        assert rows["aten::linear"].calls == rows["aten::mm"].calls == 2
        assert rows["aten::linear"].key.stack == (
            "<built-in method linear of builtin_function_or_method object>",
        )
        assert rows["aten::mm"].key.stack == ("a.py(1): f", "<o>")

    def test_backward_op_has_the_stack_and_module_of_its_forward_op(self, b: TraceBuilder) -> None:
        main, engine = b.thread(tid=1), b.thread(tid=2)
        b.slice(main, "nn.Module: Net_0", 0, 100, SliceKind.PYTHON)
        b.slice(main, "torch/nn/linear.py(1): forward", 5, 90, SliceKind.PYTHON)
        b.slice(main, "nn.Module: Linear_1", 10, 50, SliceKind.PYTHON)
        b.slice(main, "aten::mm", 20, 5, sequence_number=3, forward_thread=0)
        b.slice(engine, "MmBackward0", 200, 50, sequence_number=3, forward_thread=1)
        b.slice(engine, "aten::mm", 210, 20)
        b.slice(engine, "aten::add", 300, 5)
        trace = b.build()
        rows = {(r.name, r.key.module): r.self_cpu_ns for r in table(trace, GroupBy.MODULE).rows}
        assert rows == {
            ("aten::mm", "Net_0/Linear_1"): 25,
            ("MmBackward0", "Net_0/Linear_1"): 30,
            ("aten::add", None): 5,
        }
        stacks = {r.key.stack for r in table(trace, "stack").rows if r.name == "MmBackward0"}
        assert stacks == {
            ("nn.Module: Linear_1", "torch/nn/linear.py(1): forward", "nn.Module: Net_0")
        }

    def test_recorded_stack_and_module_names_win(self, b: TraceBuilder) -> None:
        b.slice(
            b.thread(), "aten::mm", 0, 1, call_stack="a.py(1): f;b.py(2): g", module_hierarchy="N.L"
        )
        trace = b.build()
        assert table(trace, "stack").rows[0].key.stack == ("a.py(1): f", "b.py(2): g")
        assert table(trace, "module").rows[0].key.module == "N/L"

    @pytest.mark.parametrize("group_by", ["stack", "module"])
    def test_grouping_by_what_was_not_recorded_says_so(
        self, b: TraceBuilder, group_by: str
    ) -> None:
        b.slice(b.thread(), "aten::mm", 0, 1)
        with pytest.raises(UsageError, match=f"no {group_by}s were recorded; record with"):
            table(b.build(), group_by)


class TestPointRows:
    def test_allocator_events_outside_all_calls_are_a_row_as_in_torch(
        self, b: TraceBuilder
    ) -> None:
        cpu = b.thread()
        b.slice(cpu, "aten::empty", 100, 10)
        for ts in (99, 100, 105, 110, 111):
            b.memory(cpu, ts, address=1, size_bytes=8)
        b.instant(cpu, "[OutOfMemory]", 105)
        b.instant(cpu, "mark", 105)
        calls = {r.name: r.calls for r in table(b.build()).rows}
        assert calls == {"aten::empty": 1, "[memory]": 2, "[OutOfMemory]": 1}


def test_profiler_rows_are_no_calls(b: TraceBuilder) -> None:
    row_of_profiler = b.track(Track(TrackKind.PROFILER, "Spans", "PyTorch Profiler"))
    b.slice(row_of_profiler, "PyTorch Profiler (0)", 0, 9_999, SliceKind.PROFILER)
    b.slice(b.thread(), "aten::mm", 10, 5)
    assert self_cpu(table(b.build())) == {"aten::mm": 5}


def test_deep_nesting_needs_no_recursion(b: TraceBuilder) -> None:
    cpu, depth = b.thread(), 3_000
    for level in range(depth):
        b.slice(cpu, f"f{level % 7}", level, 2 * depth - 2 * level, SliceKind.PYTHON)
    b.slice(cpu, "aten::mm", depth, 1)
    result = table(b.build(), "stack")
    assert len(row(result, "aten::mm").key.stack or ()) == depth
