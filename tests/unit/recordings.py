"""A small recording of the simulated device, written by hand: every figure can be added up."""

from __future__ import annotations

from trnscope.sim.virtual_trace.recording import (
    CollectiveInfo,
    HostKind,
    HostRow,
    Inputs,
    Launch,
    LaunchKind,
    MemoryRow,
    Message,
    Recording,
    Simulation,
    WaitRow,
)

SEQUENCE = (1 << 48) + 29
"""Sequence ids start beyond 2**48."""
TRN2 = Simulation(
    hardware="trn2",
    version="1",
    instance="trn2.3xlarge",
    title="AWS Trainium2",
    lnc=2,
    num_devices=2,
    memory_bytes=24 * 1024**3,
)
INPUTS = Inputs(((128, 1024), ()), ("c10::BFloat16", "Scalar"), ("", "1"))
KEY = "mm--[128,1024]:BFloat16=#1"


def host(number: int, name: str, start: int, end: int, **more: object) -> HostRow:
    """A row of the main thread."""
    kind = more.pop("kind", HostKind.OP)
    thread = more.pop("thread", 0)
    return HostRow(number, kind, name, thread, start, end, **more)  # type: ignore[arg-type]


REDUCE = Message(
    "allreduce", 1024, 1024, "BFloat16", "0", (4, 6), 1, "default_pg", sequence_number=9
)
"""Of a group of two, of which this process is the second; the group's ninth collective."""


def launch(
    number: int, kind: LaunchKind, name: str, host_ns: tuple[int, int], device_ns: tuple[int, int],
    **more: object,
) -> Launch:  # fmt: skip
    """A launch of the main thread on core 0, stream 0."""
    places = {"core": 0, "stream": 0, "thread": 0, **more}
    return Launch(SEQUENCE + number, number, kind, name, host_start_ns=host_ns[0],
                  host_end_ns=host_ns[1], device_start_ns=device_ns[0],
                  device_end_ns=device_ns[1], **places)  # type: ignore[arg-type]  # fmt: skip


def recording(**more: object) -> Recording:
    """One step: a copy in, a product, an all-reduce on stream 1, a copy out and a wait."""
    reduce = CollectiveInfo("all_reduce", 1024, "bfloat16", 2)
    values: dict[str, object] = {
        "simulation": TRN2,
        "start_ns": 0,
        "end_ns": 100_000,
        "host": (
            host(1, "ProfilerStep#3", 0, 100_000, kind=HostKind.ANNOTATION),
            host(2, "aten::copy_", 1_000, 6_000),
            host(3, "aten::linear", 7_001, 20_003, inputs=INPUTS),
            host(4, "aten::mm", 8_000, 20_000, sequence_number=7),
            host(5, "c10d::allreduce_", 21_000, 25_000),
            host(6, "aten::item", 26_000, 90_000),
            host(
                7,
                "MmBackward0",
                30_000,
                31_000,
                kind=HostKind.BACKWARD,
                thread=1,
                sequence_number=7,
                forward_thread=0,
            ),
        ),
        "launches": (
            launch(
                1,
                LaunchKind.COPY_H2D,
                "aten::copy_",
                (2_000, 5_000),
                (6_000, 16_000),
                op=2,
                num_bytes=262_144,
            ),
            launch(
                2,
                LaunchKind.KERNEL,
                "aten::mm",
                (9_000, 19_000),
                (22_000, 52_000),
                op=4,
                cache_key=KEY,
                compile_ns=4_000,
                call_start_ns=13_000,
            ),
            launch(
                3,
                LaunchKind.COLLECTIVE,
                "all_reduce",
                (22_000, 24_000),
                (40_000, 70_000),
                op=5,
                stream=1,
                collective=reduce,
                message=REDUCE,
            ),
            launch(
                4,
                LaunchKind.COPY_D2H,
                "aten::item",
                (27_000, 29_000),
                (70_000, 80_000),
                op=6,
                num_bytes=4,
            ),
        ),
        "waits": (WaitRow("nrt_async_sema_wait", 0, 29_000, 80_000, op=6),),
        "memory": (MemoryRow(1_500, 0, 0, 1, 262_144, 262_144, 2_097_152),),
    }
    return Recording(**{**values, **more})  # type: ignore[arg-type]
