"""``system_profile.json``, the mapping of framework ops, and samples of the real host."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.unit.recordings import SEQUENCE, recording
from trnscope.sim.virtual_trace.artifacts import framework_mapping, write_system_trace
from trnscope.sim.virtual_trace.host_samples import (
    CpuSample,
    HostSampler,
    HostSamples,
    MemorySample,
    parse_meminfo,
    parse_stat,
)
from trnscope.sim.virtual_trace.system_events import system_events

SAMPLES = HostSamples((CpuSample(1_000, 50, 3, 0.25),), (MemorySample(1_000, 3, 12),))


def document(tmp_path: Path) -> dict[str, Any]:
    events = system_events(recording())
    path = write_system_trace(recording(), events, SAMPLES, "sim-trn2.3xlarge", tmp_path)
    assert path.name == "system_profile.json"
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def test_events_in_the_documented_form(tmp_path: Path) -> None:
    events = document(tmp_path)["trace_events"]
    call = next(event for event in events if event["name"] == "nrta_execute_schedule")
    assert (call["timestamp"], call["duration"], call["type"]) == (13_000, 6_000, 11)
    assert (call["group"], call["lnc_idx"], call["nc_idx"]) == ("nrt-nc-000", "0", 0)
    assert call["flow_id"] == [str(SEQUENCE + 2)]
    assert call["nrta_seq_id"] == str(SEQUENCE + 2)
    copy = next(event for event in events if event["name"] == "dmem_buf_copyin")
    assert (copy["size"], copy["trace_event_source"]) == ("262144", "neuron_hw")
    op = next(event for event in events if event["name"] == "aten::mm [trace.json]")
    assert (op["type"], op["External id"]) == (99999, 4)


def test_it_says_which_clock_is_which(tmp_path: Path) -> None:
    found = document(tmp_path)
    assert found["system_profile_metadata"][0]["simulated"] is True
    assert found["system_profile_metadata"][0]["clock"] == "virtual"
    assert found["cpu_util"] == [
        {
            "cpu_id": "3",
            "util": 25.0,
            "timestamp": 1_000,
            "duration": 50,
            "instance_id": "sim-trn2.3xlarge",
            "clock": "real",
        }
    ]
    assert (found["mem_usage"][0]["usage"], found["mem_usage"][0]["percent_usage"]) == (3, 25.0)
    assert any("real clock" in text for text in found["warnings"])


def test_the_mapping_joins_sequence_ids_to_autograd() -> None:
    assert framework_mapping(recording()) == {
        "version": 1,
        "data": [
            {
                "nrta_seq_id": SEQUENCE + 2,
                "framework_op_exec_ids": [{"seq_nr": 7, "th_id": 0, "stream_id": 0}],
            }
        ],
    }


def test_ticks_of_processors() -> None:
    text = "cpu  9 9 9 9 9 9 9 9 0 0\ncpu0 10 1 4 80 5 0 0 0 0 0\ncpu1 1 0 0 9 0 0 0 0 0 0\nintr 1"
    assert parse_stat(text) == {0: (15, 100), 1: (1, 10)}


def test_memory_in_use_is_what_is_not_available() -> None:
    assert parse_meminfo("MemTotal: 100 kB\nMemFree: 1 kB\nMemAvailable: 40 kB\n") == (
        60 * 1024,
        100 * 1024,
    )
    assert parse_meminfo("MemTotal: 100 kB\n") is None


def test_nothing_is_sampled_unasked() -> None:
    sampler = HostSampler(cpu=False, memory=False)
    sampler.start()
    assert sampler.stop() == HostSamples()


def test_the_real_host_is_sampled() -> None:
    sampler = HostSampler(cpu=True, memory=True, period_s=0.01)
    sampler.start()
    samples = sampler.stop()
    assert all(0 <= one.busy_ratio <= 1 for one in samples.cpu)
    assert all(0 < one.used_bytes < one.total_bytes for one in samples.memory)
    if Path("/proc/meminfo").exists():
        assert len(samples.memory) >= 2
