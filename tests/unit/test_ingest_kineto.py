"""Torch's categories, device rows, devices, attributes and ranks in every generation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.unit.chrome_json import (
    attribute,
    complete,
    kernel,
    kinds,
    named,
    open_events,
    open_path,
    write,
)
from trnscope.ingest.kineto import device_kind_by_name, kernel_kind, read_header, task_kind
from trnscope.ingest.open import open_trace
from trnscope.model.kinds import DeviceKind, SliceKind, TrackKind
from trnscope.model.source import rank_in_file_name
from trnscope.model.track import Device
from trnscope.store.cache import open_cached
from trnscope.store.reader import Trace

HOST = [
    ("cpu_op", SliceKind.CPU_OP),
    ("Operator", SliceKind.CPU_OP),
    ("user_annotation", SliceKind.ANNOTATION),
    ("USER_ANNOTATION", SliceKind.ANNOTATION),
    ("python_function", SliceKind.PYTHON),
    ("FEE", SliceKind.PYTHON),
    ("overhead", SliceKind.OVERHEAD),
    ("Runtime", SliceKind.RUNTIME),
    ("cuda_runtime", SliceKind.RUNTIME),
    ("cuda_driver", SliceKind.RUNTIME),
    ("xpu_runtime", SliceKind.RUNTIME),
    ("xpu_driver", SliceKind.RUNTIME),
    ("mtia_runtime", SliceKind.RUNTIME),
    ("hpu_op", SliceKind.RUNTIME),
    ("glow_runtime", SliceKind.RUNTIME),
    ("privateuse1_runtime", SliceKind.RUNTIME),
    ("collective_comm", SliceKind.ANNOTATION),
    ("mtia_insight", SliceKind.OTHER),
    ("", SliceKind.OTHER),
    ("anything else", SliceKind.OTHER),
]
DEVICE = [
    ("kernel", SliceKind.KERNEL),
    ("Kernel", SliceKind.KERNEL),
    ("gpu_memcpy", SliceKind.MEMCPY),
    ("Memcpy", SliceKind.MEMCPY),
    ("gpu_memset", SliceKind.MEMSET),
    ("Memset", SliceKind.MEMSET),
    ("gpu_user_annotation", SliceKind.DEVICE_ANNOTATION),
    ("cuda_profiler_range", SliceKind.DEVICE_ANNOTATION),
    ("cuda_sync", SliceKind.SYNC),
    ("xpu_sync", SliceKind.SYNC),
    ("cuda_event", SliceKind.SYNC),
    ("mtia_ccp_events", SliceKind.KERNEL),
    ("collective_comm", SliceKind.COLLECTIVE),
]


def track_of(trace: Trace, name: str) -> Any:
    return trace.tracks[trace.slices.track[named(trace)[name]]]


@pytest.mark.parametrize(("category", "kind"), HOST)
def test_host_categories(tmp_path: Path, category: str, kind: SliceKind) -> None:
    trace = open_events(tmp_path, [complete("row", category, 1, 2)])
    assert kinds(trace) == {"row": kind}
    assert track_of(trace, "row").kind is TrackKind.CPU_THREAD


@pytest.mark.parametrize(("category", "kind"), DEVICE)
def test_device_categories(tmp_path: Path, category: str, kind: SliceKind) -> None:
    args = {"device": 3, "stream": 20}
    trace = open_events(tmp_path, [complete("row", category, 1, 2, pid=3, tid=20, args=args)])
    assert kinds(trace) == {"row": kind}
    track = track_of(trace, "row")
    assert (track.kind, track.device.index, track.stream) == (TrackKind.DEVICE_STREAM, 3, 20)


def test_rows_of_the_profiler_are_no_work(tmp_path: Path) -> None:
    span = complete("PyTorch Profiler (0)", "Trace", 0, 99, pid="Spans", tid="PyTorch Profiler")
    trace = open_events(tmp_path, [span, complete("a", "cpu_op", 1, 1)])
    assert kinds(trace)["PyTorch Profiler (0)"] is SliceKind.PROFILER
    assert track_of(trace, "PyTorch Profiler (0)").kind is TrackKind.PROFILER


@pytest.mark.parametrize(
    "name",
    [
        "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
        "ncclKernel_AllReduce",
        "rccl_main_kernel",
        "void oneCCL_kernel",
        "hcom_allReduce__123",
        "void vllm::cross_device_reduce_1stage<half, 2>",
    ],
)
def test_communication_by_name(name: str) -> None:
    assert kernel_kind(name) is SliceKind.COLLECTIVE


@pytest.mark.parametrize("name", ["gemm", "void reduce_kernel<512>", "layer_norm", "memcpyish"])
def test_computing_by_name(name: str) -> None:
    assert kernel_kind(name) is SliceKind.KERNEL


def test_communication_by_arguments(tmp_path: Path) -> None:
    args = {"Collective name": "allreduce", "dtype": "Float"}
    trace = open_events(tmp_path, [kernel("opaque", 1, 2, **args), kernel("gemm", 4, 2)])
    assert kinds(trace) == {"opaque": SliceKind.COLLECTIVE, "gemm": SliceKind.KERNEL}


def test_kinds_of_device_work_by_name() -> None:
    assert device_kind_by_name("dma_request") is SliceKind.MEMCPY
    assert device_kind_by_name("Memcpy HtoD") is SliceKind.MEMCPY
    assert device_kind_by_name("memset") is SliceKind.MEMSET
    assert device_kind_by_name("hccl:all_reduce") is SliceKind.COLLECTIVE
    assert device_kind_by_name("aten::mse_loss") is SliceKind.KERNEL


def test_annotations_among_old_operators(tmp_path: Path) -> None:
    events = [
        complete("ProfilerStep#5", "Operator", 0, 100),
        complete("Optimizer.step#SGD.step", "Operator", 10, 20),
        complete("enumerate(DataLoader)#Iter.__next__", "Operator", 40, 20),
        complete("aten::mm", "Operator", 70, 20),
    ]
    assert list(kinds(open_events(tmp_path, events)).values()).count(SliceKind.CPU_OP) == 1


# Drivers of PrivateUse1 -----------------------------------------------------------------

DRIVER = [
    complete("aten::mm", "cpu_op", 0, 20, args={"External id": 2}),
    complete("aten::mm.r", "privateuse1_runtime", 5, 3, args={"External id": 2}),
    complete("model_default", "privateuse1_driver", 10, 100, tid=4, args={"External id": 2}),
    complete("Memcpy HtoD", "privateuse1_driver", 120, 5, tid=4),
]


def test_driver_rows_are_device_work_where_there_is_no_other(tmp_path: Path) -> None:
    backend = {"backend": "neuron", "rank": 2, "world_size": 4}
    trace = open_events(tmp_path, DRIVER, distributedInfo=backend)
    assert kinds(trace) == {
        "aten::mm": SliceKind.CPU_OP,
        "aten::mm.r": SliceKind.RUNTIME,
        "model_default": SliceKind.KERNEL,
        "Memcpy HtoD": SliceKind.MEMCPY,
    }
    track = track_of(trace, "model_default")
    assert (track.kind, track.stream) == (TrackKind.DEVICE_STREAM, 4)
    assert track.device == Device(DeviceKind.NEURON, 0)
    assert attribute(trace, "external_id")["model_default"] == 2
    assert trace.launches.has_op.sum() == 1


def test_driver_rows_are_calls_where_kernels_are_recorded(tmp_path: Path) -> None:
    work = kernel("gemm", 30, 50)
    trace = open_events(tmp_path, [*DRIVER, work])
    assert kinds(trace)["model_default"] is SliceKind.RUNTIME
    assert track_of(trace, "model_default").kind is TrackKind.CPU_THREAD
    assert track_of(trace, "gemm").device == Device(DeviceKind.PRIVATEUSE1, 0)


def test_driver_rows_of_a_device_without_kernels_are_its_work(tmp_path: Path) -> None:
    own = complete("d1", "privateuse1_driver", 10, 5, pid=1000, tid=3, args={"device": 1})
    trace = open_events(tmp_path, [own, kernel("gemm", 30, 50)])
    assert kinds(trace)["d1"] is SliceKind.KERNEL
    assert track_of(trace, "d1").device.index == 1


# Devices ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("events", "header", "kind"),
    [
        ([], {}, DeviceKind.CUDA),
        ([complete("cudaLaunchKernel", "cuda_runtime", 0, 1)], {}, DeviceKind.CUDA),
        ([complete("hipLaunchKernel", "cuda_runtime", 0, 1)], {}, DeviceKind.HIP),
        ([], {"hip_runtime_version": 1}, DeviceKind.HIP),
        ([], {"deviceProperties": [{"id": 0, "name": "AMD Instinct MI300X"}]}, DeviceKind.HIP),
        ([complete("zeX", "xpu_runtime", 0, 1)], {}, DeviceKind.XPU),
        ([complete("run", "mtia_runtime", 0, 1)], {}, DeviceKind.MTIA),
        ([complete("nrt_execute", "privateuse1_runtime", 0, 1)], {}, DeviceKind.NEURON),
        ([complete("aclrtLaunch", "privateuse1_runtime", 0, 1)], {}, DeviceKind.NPU),
        ([complete("orLaunch", "privateuse1_runtime", 0, 1)], {}, DeviceKind.PRIVATEUSE1),
    ],
)
def test_the_family_of_devices(
    tmp_path: Path, events: list[Any], header: dict[str, Any], kind: DeviceKind
) -> None:
    trace = open_events(tmp_path, [*events, kernel("k", 5, 1)], **header)
    assert track_of(trace, "k").device.kind is kind


def test_a_label_names_the_family(tmp_path: Path) -> None:
    label = {"ph": "M", "name": "process_labels", "pid": 0, "tid": 0, "args": {"labels": "XPU 0"}}
    trace = open_events(tmp_path, [label, kernel("k", 5, 1)])
    assert track_of(trace, "k").device.label == "xpu:0"


def test_product_names(tmp_path: Path) -> None:
    two = [{"id": 0, "name": "A"}, {"id": 1, "name": "B"}]
    trace = open_events(tmp_path, [kernel("k", 5, 1)], deviceProperties=two)
    assert track_of(trace, "k").device.name == "A"
    rocm = complete("k", "kernel", 1, 2, pid=9, tid=1, args={"device": 9, "stream": 1})
    same = [{"id": i, "name": "MI300X"} for i in range(8)]
    trace = open_events(tmp_path, [rocm], deviceProperties=same)
    assert track_of(trace, "k").device == Device(DeviceKind.CUDA, 9, "MI300X")
    trace = open_events(tmp_path, [rocm], deviceProperties=two)
    assert track_of(trace, "k").device.name is None
    trace = open_events(tmp_path, [rocm], deviceProperties=[{"id": 9, "name": ""}])
    assert track_of(trace, "k").device.name is None


def test_a_stream_of_minus_one_is_none(tmp_path: Path) -> None:
    for stream in (-1, 4294967295):
        row = complete("Event Sync", "cuda_sync", 1, 2, pid=0, tid=-1, args={"stream": stream})
        trace = open_events(tmp_path, [row])
        assert track_of(trace, "Event Sync").stream is None


def test_sync_rows_moved_to_a_row_of_their_own_keep_their_stream(tmp_path: Path) -> None:
    args = {"device": 0, "stream": 7}
    row = complete("Stream Sync", "cuda_sync", 1, 2, pid=0, tid=1000007, args=args)
    trace = open_events(tmp_path, [kernel("k", 5, 1), row])
    track = track_of(trace, "Stream Sync")
    assert (track.thread, track.stream, track.device.index) == ("1000007", 7, 0)


def test_streams_that_share_a_row_are_tracks_of_their_own(tmp_path: Path) -> None:
    trace = open_events(
        tmp_path,
        [
            complete("bare", "kernel", 0, 9, pid=0, tid=7),
            kernel("a", 10, 9, stream=20),
            kernel("b", 12, 9, stream=21),
            kernel("c", 30, 9, stream=20),
            kernel("d", 31, 9, stream=21),
        ],
    )
    assert len(trace.tracks) == 2
    at = {name: int(trace.slices.track[i]) for name, i in named(trace).items()}
    assert at["bare"] == at["a"] == at["c"]
    assert at["b"] == at["d"] != at["a"]
    assert [trace.tracks[at[name]].stream for name in ("a", "b")] == [20, 21]
    assert trace.slices.depth.tolist() == [0] * 5


def test_rows_without_args_find_the_device_by_pid_and_tid(tmp_path: Path) -> None:
    note = complete("step", "gpu_user_annotation", 1, 9, pid=2, tid="stream 13")
    nccl = complete("ncclKernel", "kernel", 1, 9, pid=2, tid=13)
    trace = open_events(tmp_path, [note, nccl])
    (track,) = trace.tracks
    assert (track.device.index, track.stream) == (2, 13)


def test_ascend_rows_are_npu_work(tmp_path: Path) -> None:
    def task(name: str, kind: str, ts: int) -> dict[str, Any]:
        args = {"Task Type": kind, "Stream Id": 5, "Model Id": 1}
        row = complete(name, "", str(ts), 2, pid=1760, tid=5, args=args)
        del row["cat"]
        return row

    events = [
        complete("aten::mm", "cpu_op", 1, 5),
        task("MatMulV2", "AI_CORE", 10),
        task("copy", "MEMCPY_ASYNC", 13),
        task("wait", "EVENT_WAIT", 16),
        task("hcom_allReduce_", "AI_VECTOR_CORE", 19),
    ]
    trace = open_events(tmp_path, events)
    assert kinds(trace) == {
        "aten::mm": SliceKind.CPU_OP,
        "MatMulV2": SliceKind.KERNEL,
        "copy": SliceKind.MEMCPY,
        "wait": SliceKind.SYNC,
        "hcom_allReduce_": SliceKind.COLLECTIVE,
    }
    assert track_of(trace, "MatMulV2").device.kind is DeviceKind.NPU
    assert track_of(trace, "MatMulV2").stream == 5
    assert task_kind("AI_CPU") is SliceKind.KERNEL


# Attributes -------------------------------------------------------------------------------


def test_attributes_in_new_and_old_spelling(tmp_path: Path) -> None:
    new = {
        "External id": 1025,
        "Sequence number": 7,
        "Fwd thread id": 0,
        "Input Dims": [[2, 3]],
        "Input type": ["float"],
        "Input Strides": [[3, 1]],
        "Concrete Inputs": ["", "2"],
        "Module Hierarchy": "Net_0.Linear_1",
        "Call stack": "a.py(1): f;b.py(2): g",
        "flops": 1200,
        "Collective name": "allreduce",
        "In msg nelems": 10,
        "Out msg nelems": 20,
        "Group size": 8,
        "dtype": "Float",
        "Process Group Name": "0",
        "Process Group Ranks": "[0, 1]",
        "Seq": 3,
        "Comms Id": 13835058055282163713,
    }
    old = {
        "external id": 5,
        "Input dims": [],
        "In msg size": 4,
        "Out msg size": 6,
        "Process Group ID": 12,
    }
    events = [
        complete("new", "cpu_op", 1, 2, args=new),
        complete("old", "Operator", 5, 2, args=old),
    ]
    trace = open_events(tmp_path, events)
    expected: dict[str, dict[str, Any]] = {
        "external_id": {"new": 1025, "old": 5},
        "sequence_number": {"new": 7},
        "forward_thread": {"new": 0},
        "input_dims": {"new": "[[2, 3]]", "old": "[]"},
        "input_types": {"new": '["float"]'},
        "input_strides": {"new": "[[3, 1]]"},
        "concrete_inputs": {"new": '["", "2"]'},
        "module_hierarchy": {"new": "Net_0.Linear_1"},
        "call_stack": {"new": "a.py(1): f;b.py(2): g"},
        "flops": {"new": 1200},
        "collective_name": {"new": "allreduce"},
        "in_nelems": {"new": 10, "old": 4},
        "out_nelems": {"new": 20, "old": 6},
        "group_size": {"new": 8},
        "dtype": {"new": "Float"},
        "process_group_name": {"new": "0", "old": "12"},
        "process_group_ranks": {"new": "[0, 1]"},
        "collective_seq": {"new": 3},
        "comms_id": {"new": 13835058055282163713},
    }
    assert {key: attribute(trace, key) for key in expected} == expected


def test_attributes_of_device_rows(tmp_path: Path) -> None:
    graph = {"graph id": 3, "graph node id": 2**40, "grid": [1, 2, 3], "block": [32, 1, 1]}
    copy = {"device": 0, "stream": 7, "correlation": 8, "bytes": 4096, "kind": "HtoD"}
    sync = {"cuda_sync_kind": "Stream Sync", "correlation": -1, "stream": -1}
    events = [
        kernel("k", 1, 2, correlation=2**53 + 1, **graph),
        complete("c", "gpu_memcpy", 4, 2, pid=0, tid=7, args=copy),
        complete("s", "cuda_sync", 4, 2, pid=0, tid=-1, args=sync),
    ]
    trace = open_events(tmp_path, events)
    assert attribute(trace, "correlation") == {"k": 2**53 + 1, "c": 8}
    assert attribute(trace, "graph_id") == {"k": 3}
    assert attribute(trace, "graph_node_id") == {"k": 2**40}
    assert attribute(trace, "grid") == {"k": "[1, 2, 3]"}
    assert attribute(trace, "block") == {"k": "[32, 1, 1]"}
    assert attribute(trace, "bytes") == {"c": 4096}
    assert attribute(trace, "memcpy_kind") == {"c": "HtoD"}
    assert attribute(trace, "sync_kind") == {"s": "Stream Sync"}
    assert attribute(trace, "stream") == {"k": 7, "c": 7}


def test_one_launch_of_many_kernels(tmp_path: Path) -> None:
    events = [complete("hipGraphLaunch", "cuda_runtime", 0, 5, args={"correlation": 9})]
    events += [kernel(f"k{i}", 10 + i, 1, correlation=9) for i in range(5)]
    trace = open_events(tmp_path, events)
    assert trace.launches.has_launch.tolist() == [True] * 5
    assert len(set(trace.launches.launch_slice.tolist())) == 1


# Ranks ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "rank"),
    [
        ("rank-34.Jul_15_10_52_41.1074.pt.trace.json.gz", 34),
        ("rank0.json", 0),
        ("mtia_rank_0.json.gz", 0),
        ("bs_32_rank0.json.gz", 0),
        ("inference_rank_1.json", 1),
        ("Rank_7.json", 7),
        ("worker0.pt.trace.json.gz", None),
        ("rank_not_found.json.gz", None),
        ("frank3.json", None),
        ("rank0_of_rank8.json", None),
        ("rank1st.json", None),
        ("trace.json", None),
    ],
)
def test_rank_in_a_file_name(name: str, rank: int | None) -> None:
    assert rank_in_file_name(Path("/rank9") / name) == rank


def test_the_header_decides_over_the_name(tmp_path: Path) -> None:
    info = {"backend": "nccl", "rank": 3, "world_size": 8}
    events = [complete("a", "cpu_op", 1, 1)]
    path = write(tmp_path / "rank5.json", events, distributedInfo=info)
    source = open_path(path).source
    assert (source.rank, source.world_size, source.format) == (3, 8, "kineto")
    source = open_path(write(tmp_path / "rank-5.json", events, distributedInfo={})).source
    assert (source.rank, source.world_size) == (5, None)


def test_copies_under_other_names_have_their_own_ranks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRNSCOPE_CACHE_DIR", str(tmp_path / "cache"))
    first = write(tmp_path / "rank-0.json", [complete("a", "cpu_op", 1, 1)])
    second = tmp_path / "rank-1.json"
    second.write_bytes(first.read_bytes())
    traces = [open_cached(path, open_trace) for path in (first, second)]
    assert traces[0].directory == traces[1].directory
    assert [trace.source.rank for trace in traces] == [0, 1]
    renamed = first.rename(tmp_path / "trace.json")
    assert open_cached(renamed, open_trace).source.rank is None


def test_a_header_in_odd_shapes() -> None:
    header = read_header(
        [
            ("distributedInfo", b'"{\\"rank\\": \\"2\\", \\"world_size\\": 4}"'),
            ("deviceProperties", b'[{"id": 0, "name": "X", "simulated": true}, 5, {"name": "y"}]'),
            ("baseTimeNanoseconds", b"5"),
            ("broken", b"[1,"),
        ]
    )
    assert (header.rank, header.world_size, header.base_time_ns) == (2, 4, 5)
    assert header.simulated
    assert header.device_name(0) == "X"
    assert header.texts["broken"] == "[1,"
    odd = (
        b"true",
        b"-1",
        b"1.5",
        b"null",
        b'"x"',
        b"2147483648",
        b'"4294967296"',
        b"1099511627776",
    )
    for raw in (*odd, b'"' + b"9" * 5000 + b'"', b"9" * 5000):
        assert read_header([("distributedInfo", b'{"rank": ' + raw + b"}")]).rank is None


def test_the_largest_rank() -> None:
    info = b'{"rank": 2147483647, "world_size": "2147483647"}'
    header = read_header([("distributedInfo", info)])
    assert (header.rank, header.world_size) == (2147483647, 2147483647)
    devices = read_header([("deviceProperties", b'[{"id": 4294967296, "name": "X"}]')]).devices
    assert devices == ()


def test_process_and_thread_ids_of_thousands_of_digits(tmp_path: Path) -> None:
    digits = "7" * 5000
    trace = open_events(tmp_path, [complete("k", "kernel", 1, 9, pid=digits, tid=digits)])
    (track,) = trace.tracks
    assert (track.device, track.stream) == (Device(DeviceKind.CUDA, 0), None)
    assert track.thread == digits


def test_the_format_is_told_by_content(tmp_path: Path) -> None:
    trace = open_events(tmp_path, [complete("a", "", 1, 1)])
    assert trace.source.format == "chrome"
    trace = open_events(tmp_path, [complete("a", "cpu_op", 1, 1)])
    assert trace.source.format == "kineto"
    trace = open_events(tmp_path, [complete("a", "", 1, 1)], schemaVersion=1, with_stack=1)
    assert trace.source.format == "kineto"
    assert trace.source.metadata["with_stack"] == "1"
