"""Device time against HTA on its own traces (docs/agreement.md).

HTA chooses, rounds and sorts differently. Its rules, applied to our slices, give its numbers
exactly, which proves that the choice is the whole difference; where the rules choose nothing
differently our own numbers equal HTA's.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import trnscope
from trnscope.analysis.devices import summarize_devices
from trnscope.model.intervals import I64, Intervals
from trnscope.model.kinds import SliceKind
from trnscope.store.reader import Trace
from trnscope.store.tables import U32

pytestmark = pytest.mark.slow

REPO = Path(__file__).resolve().parents[2]
VENV = REPO / "build" / "hta-0.5.0"
REQUIREMENTS = ("HolisticTraceAnalysis==0.5.0", "pandas<3")

FILES = (
    "amd_trace/mi250_minitoy_train_ROCm6_2_kineto.json.gz",
    "nccl_parser_config/nccl_data.json.gz",
    "trace_filter/sampled_rank-0.json.gz",
    "trace_filter/sampled_rank-1.json.gz",
    "critical_path/alexnet/benchmark_result_2869224_1695835535_trace.json.gz",
    "critical_path/cuda_event_sync/event_sync_trace.json.gz",
    "critical_path/cuda_event_sync_multi_stream/event_sync_trace.json.gz",
    "critical_path/end_to_end/simple_add/input/trace.json.gz",
    "with_gpu_user_annotation/step_based_trace_2543932.json.gz",
    "triton_example/triton_example.json.gz",
    "trace_file_list/inference_rank_1.json.gz",
)
SAME_CHOICE = (
    "with_gpu_user_annotation/step_based_trace_2543932.json.gz",
    "trace_file_list/inference_rank_1.json.gz",
)
"""Whole µs, fewer than two steps, everything linked, no sync rows, no memsets beside kernels."""


@dataclass(frozen=True)
class Times:
    """HTA's columns, µs; ``overlap`` in percent of communication time."""

    idle: float
    compute: float
    non_compute: float
    kernel_time: float
    overlap: float | None


@pytest.fixture(scope="session")
def data(shared: Path) -> Path:
    return shared / "traces" / "HTA" / "tests" / "data"


@pytest.fixture(scope="session")
def hta(data: Path) -> dict[str, Times]:
    """HTA's answers for all files, by file."""
    paths = [str(data / name) for name in FILES]
    script = Path(__file__).with_name("hta_times.py")
    run = subprocess.run([hta_python(), script, *paths], capture_output=True, text=True, check=True)
    answers = json.loads(run.stdout)
    return {name: Times(**answers[path]) for name, path in zip(FILES, paths, strict=True)}


def hta_python() -> Path:
    """The interpreter of an environment with HTA, made once; skips where that fails."""
    python = VENV / "bin" / "python"
    ready = VENV / "ready"
    if not ready.exists():
        steps = (
            [sys.executable, "-m", "venv", "--clear", VENV],
            [python, "-m", "pip", "install", "--quiet", *REQUIREMENTS],
        )
        for step in steps:
            done = subprocess.run(step, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                pytest.skip(f"HTA 0.5.0 cannot be installed: {done.stderr.strip()[-200:]}")
        ready.touch()
    return python


def open_one(path: Path) -> Trace:
    (trace,) = trnscope.open(path).traces
    return trace


def chosen_by_hta(trace: Trace) -> U32:
    """Slices that HTA counts as kernels: all that carry a stream number.

    ROCm's host calls give the stream's address as text instead, which HTA takes for none.

    If there are two steps or more, only those with the correlation id of a host event that
    starts before the last step.
    """
    stream, correlation = trace.attribute("stream"), trace.attribute("correlation")
    assert stream is not None and correlation is not None
    slices = trace.slices
    ids = stream.slices[np.asarray(stream.values, np.int64) >= 0]
    ids = ids[slices.kind[ids] != SliceKind.RUNTIME]
    host = slices.of_kind(SliceKind.ANNOTATION, SliceKind.CPU_OP, SliceKind.RUNTIME)
    is_step = np.array(
        [n.startswith("ProfilerStep") for n in trace.strings.take(slices.name[host])]
    )
    if np.unique(slices.name[host[is_step]]).size < 2:
        return ids
    last_step = slices.start_ns[host[is_step]].max()
    has, value = correlation.of(host)
    early = value[has & (slices.start_ns[host] < last_step)]
    has, value = correlation.of(ids)
    return ids[has & np.isin(value, early)]


def by_rule_of_hta(trace: Trace) -> Times:
    """Its choice, its rounding (starts up, ends down, to whole µs) and its kinds by name."""
    ids = chosen_by_hta(trace)
    start = trace.slices.start_ns[ids]
    end = (start + trace.slices.dur_ns[ids]) // 1000
    start = -(-start // 1000)
    names = trace.strings.take(trace.slices.name[ids])
    communicates = np.array([re.match(r"nccl.*Kernel", name) is not None for name in names])
    copies_or_waits = np.array(
        [re.match(r"dma|.*Memcpy|Memset|.*Sync", name) is not None for name in names]
    )
    computes = ~communicates & ~copies_or_waits
    busy, compute = union(start, end), union(start[computes], end[computes])
    communication = union(start[communicates], end[communicates])
    kernel_time = int(busy.end[-1] - busy.start[0])
    both = communication.total - communication.subtract(compute).total
    return Times(
        idle=kernel_time - busy.total,
        compute=compute.total,
        non_compute=busy.total - compute.total,
        kernel_time=kernel_time,
        overlap=round(100 * both / communication.total, 2) if communication.total else None,
    )


def union(start: I64, end: I64) -> Intervals:
    return Intervals.union_of(start, end)


@pytest.mark.parametrize("name", FILES)
def test_its_rules_on_our_slices_give_its_numbers(
    data: Path, hta: dict[str, Times], name: str
) -> None:
    assert by_rule_of_hta(open_one(data / name)) == hta[name]


@pytest.mark.parametrize("name", SAME_CHOICE)
def test_our_numbers_are_its_numbers(data: Path, hta: dict[str, Times], name: str) -> None:
    (row,) = summarize_devices(open_one(data / name))
    ours = (row.idle_ns, row.compute_ns, row.busy_ns - row.compute_ns)
    expected = hta[name]
    assert ours == (expected.idle * 1000, expected.compute * 1000, expected.non_compute * 1000)
