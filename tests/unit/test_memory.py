"""Memory over time, with hand-computed answers; case 34 of shared/cases among them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from trnscope.analysis.memory import DeviceMemory, OpMemory, memory
from trnscope.model.kinds import DeviceKind
from trnscope.store.builder import TraceBuilder
from trnscope.store.profile import Profile

MIB2 = 2_097_152


@pytest.fixture
def b(tmp_path: Path) -> TraceBuilder:
    return TraceBuilder(tmp_path / "t")


def only_device(b: TraceBuilder) -> DeviceMemory:
    (device,) = memory(Profile((b.build(),))).devices
    return device


@pytest.mark.parametrize("with_total", [True, False])
def test_level_starts_at_what_was_held_before(b: TraceBuilder, with_total: bool) -> None:
    """Case 34; without the allocator's total the freed block gives the same start here."""
    cpu = b.thread()
    b.slice(cpu, "aten::empty", 100, 10)
    b.slice(cpu, "aten::empty", 200, 10)
    for ts, address, size, total in (
        (105, 1, 400, 1400),
        (150, 9, -1000, 400),
        (205, 2, 600, 1000),
        (300, 1, -400, 600),
    ):
        b.memory(
            cpu,
            ts,
            address,
            size,
            device_type=1,
            device_index=0,
            total_allocated=total if with_total else None,
            total_reserved=MIB2 if with_total else None,
        )
    device = only_device(b)
    assert device.device == "cuda:0"
    assert (device.num_allocations, device.num_frees) == (2, 2)
    assert (device.start_bytes, device.peak_bytes, device.end_bytes) == (1000, 1400, 600)
    assert device.is_start_exact is with_total
    assert (device.peak_ts_ns, device.peak_op) == (105, "aten::empty")
    assert device.net_bytes == -400
    assert device.ts_ns.tolist() == [105, 150, 205, 300]
    assert device.level_bytes.tolist() == [1400, 400, 1000, 600]
    assert {op.name: op.net_bytes for op in device.ops} == {"aten::empty": 1000, None: -1400}
    assert device.ops[0] == OpMemory("aten::empty", 2, 0, 1000, 0, 400)
    (before,) = device.freed_from_before.largest
    assert (before.address, before.size_bytes, before.op) == (9, 1000, None)
    (kept,) = device.never_freed.largest
    assert (kept.address, kept.size_bytes) == (2, 600)


def test_reserved_but_unused_memory(b: TraceBuilder) -> None:
    cpu = b.thread()
    for ts, address, size, total, reserved in (
        (10, 1, 600, 600, 1000),
        (20, 2, 300, 900, 1000),
        (30, 1, -600, 300, 1000),
        (40, 2, -300, 0, 400),
    ):
        b.memory(
            cpu,
            ts,
            address,
            size,
            device_type=1,
            device_index=0,
            total_allocated=total,
            total_reserved=reserved,
        )
    reserved_memory = only_device(b).reserved
    assert reserved_memory is not None
    assert (reserved_memory.peak_bytes, reserved_memory.end_bytes) == (1000, 400)
    assert (reserved_memory.most_unused_bytes, reserved_memory.most_unused_ts_ns) == (700, 30)
    assert reserved_memory.at_peak_bytes == 1000
    assert reserved_memory.unused_at_peak_ratio == 0.1


def test_less_reserved_than_allocated_is_no_negative_share(b: TraceBuilder) -> None:
    cpu = b.thread()
    for ts, total, reserved in ((10, 200, 100), (20, 300, 250)):
        b.memory(cpu, ts, ts, 100, total_allocated=total, total_reserved=reserved)
    found = only_device(b).reserved
    assert found is not None
    assert (found.peak_bytes, found.at_peak_bytes) == (250, 250)
    assert (found.most_unused_bytes, found.most_unused_ts_ns) == (None, None)
    assert found.unused_at_peak_ratio is None


def test_reserved_is_absent_where_the_allocator_reserves_nothing(b: TraceBuilder) -> None:
    cpu = b.thread()
    b.memory(cpu, 10, 1, 64, total_allocated=64, total_reserved=0)
    device = only_device(b)
    assert device.device == "cpu"
    assert device.reserved is None
    assert device.to_json()["reserved"] is None


def test_peak_before_the_first_event(b: TraceBuilder) -> None:
    cpu = b.thread()
    b.memory(cpu, 10, 1, -100, total_allocated=900, total_reserved=0)
    device = only_device(b)
    assert (device.start_bytes, device.peak_bytes, device.end_bytes) == (1000, 1000, 900)
    assert device.peak_op is None
    assert all(op.held_at_peak_bytes == 0 for op in device.ops)


def test_address_used_again_is_another_block(b: TraceBuilder) -> None:
    # 5 is taken, freed, taken again and kept.
    cpu = b.thread()
    for ts, size in ((10, 8), (20, -8), (30, 16)):
        b.memory(cpu, ts, 5, size)
    device = only_device(b)
    assert (device.start_bytes, device.freed_from_before.count) == (0, 0)
    assert [(block.ts_ns, block.size_bytes) for block in device.never_freed.largest] == [(30, 16)]


def test_who_holds_memory_at_the_peak(b: TraceBuilder) -> None:
    cpu = b.thread()
    b.slice(cpu, "a", 0, 15)
    b.slice(cpu, "b", 20, 15)
    b.slice(cpu, "c", 50, 15)
    b.memory(cpu, 5, 1, 100)
    b.memory(cpu, 10, 2, 50)
    b.memory(cpu, 25, 2, -50)
    b.memory(cpu, 30, 3, 70)
    b.memory(cpu, 45, 1, -100)
    b.memory(cpu, 55, 4, 60)
    device = only_device(b)
    assert (device.peak_bytes, device.peak_ts_ns, device.peak_op) == (170, 30, "b")
    assert {op.name: op.held_at_peak_bytes for op in device.ops} == {
        "a": 100,
        "b": 70,
        "c": 0,
        None: 0,
    }


def test_devices_are_kept_apart(b: TraceBuilder) -> None:
    cpu = b.thread()
    b.stream(kind=DeviceKind.NEURON)
    b.memory(cpu, 1, 1, 10)
    b.memory(cpu, 2, 1, 20, device_type=1, device_index=0)
    b.memory(cpu, 3, 1, 30, device_type=1, device_index=1)
    b.memory(cpu, 4, 1, 40, device_type=20, device_index=0)
    b.memory(cpu, 5, 1, 50, device_type=77, device_index=0)
    peaks = {d.device: d.peak_bytes for d in memory(Profile((b.build(),))).devices}
    assert peaks == {"cpu": 10, "cuda:0": 20, "cuda:1": 30, "neuron:0": 40, "type77:0": 50}


def test_events_in_any_order_of_the_file(b: TraceBuilder) -> None:
    cpu = b.thread()
    for ts, size in ((30, 4), (10, 1), (20, 2)):
        b.memory(cpu, ts, ts, size)
    assert only_device(b).level_bytes.tolist() == [1, 3, 7]


def test_addresses_of_64_bits_stay_exact(b: TraceBuilder) -> None:
    cpu = b.thread()
    b.memory(cpu, 1, 2**64 - 1, 8)
    b.memory(cpu, 2, 2**64 - 2, 8)
    addresses = {block.address for block in only_device(b).never_freed.largest}
    assert addresses == {2**64 - 1, 2**64 - 2}


def test_json_thins_a_long_level_and_keeps_the_peak(b: TraceBuilder) -> None:
    cpu = b.thread()
    rng = np.random.default_rng(0)
    for ts, size in enumerate(rng.integers(1, 100, 1500).tolist()):
        b.memory(cpu, ts, ts, size if ts % 3 else -size)
    device = only_device(b)
    points = device.to_json()["level"]
    assert isinstance(points, list)
    assert 400 < len(points) <= 512
    assert device.to_json()["num_points"] == 1500
    assert max(level for _, level in points) == int(device.level_bytes.max())
    assert points[0][0] == 0 and points[-1][0] == 1499


def test_memory_counters(b: TraceBuilder) -> None:
    cpu = b.thread()
    for ts, value in ((1, 5.0), (2, 9.0), (3, 7.0)):
        b.counter(cpu, "GPU memory", "used", ts, value)
        b.counter(cpu, "temperature", "", ts, value)
    (counter,) = memory(Profile((b.build(),))).counters
    assert (counter.name, counter.num_samples) == ("GPU memory used", 3)
    assert (counter.min_value, counter.max_value, counter.max_ts_ns) == (5.0, 9.0, 2)
    assert counter.last_value == 7.0


def test_nothing_recorded(b: TraceBuilder) -> None:
    b.slice(b.thread(), "aten::mm", 0, 5)
    report = memory(Profile((b.build(),)))
    assert report.to_json() == {"schema": 1, "devices": [], "counters": []}
