"""Runs the study: each way in a process of its own, then what their traces say, side by side."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from trnscope.analysis.devices import device_work
from trnscope.api import open as open_profile
from trnscope.capture import simulation
from trnscope.capture.run import KINETO_QUIET
from trnscope.errors import CaptureError
from trnscope.model.kinds import SliceKind
from trnscope.opened import OpenedProfile
from trnscope.store.reader import Trace
from trnscope.study.rmsnorm.plan import NUM_CALLS, RESULT_FILE, ROWS, TABLE_FILE, WIDTH, Way

_WAIT = re.compile(r"synchronize|_wait", re.IGNORECASE)
READ_BYTES, WRITTEN_BYTES = "hbm_read_bytes", "hbm_write_bytes"
"""Arguments of a simulated device's kernel rows."""


@dataclass(frozen=True)
class MeasuredWay:
    """One way, by call (mean of ``NUM_CALLS``). Times in ns; absent: not recorded."""

    way: Way
    executions: float | None
    """Kernels that the device ran; on a Trainium each is a compiled program (NEFF)."""
    hbm_bytes: int | None
    """Read from and written to the device's memory."""
    device_ns: int | None
    """Union of the device's work."""
    host_ns: int
    """The host in ops and runtime calls, without waiting for the device."""
    call_ns: int
    """From one call to the next; each waits for the device."""
    max_difference: float
    """Largest difference of a value from that of the first way."""
    table: str
    """What torch's ``key_averages().table()`` prints."""
    trace: Path

    def to_json(self) -> dict[str, object]:
        """One member of ``ways``."""
        return {
            "way": self.way.value,
            "executions_per_call": self.executions,
            "hbm_bytes_per_call": self.hbm_bytes,
            "device_ns_per_call": self.device_ns,
            "host_ns_per_call": self.host_ns,
            "call_ns": self.call_ns,
            "max_difference": self.max_difference,
            "key_averages": self.table,
            "trace": str(self.trace),
        }


@dataclass(frozen=True)
class NormStudy:
    """The ways side by side, on one device."""

    device: str
    simulated_by: str | None
    """The hardware model behind the times; absent: they were measured."""
    ways: tuple[MeasuredWay, ...]

    def to_json(self) -> dict[str, object]:
        """The document of ``trnscope study rmsnorm --json``."""
        return {
            "schema": 1,
            "study": "rmsnorm",
            "device": self.device,
            "simulated": self.simulated_by is not None,
            "hardware_model": self.simulated_by,
            "shape": [ROWS, WIDTH],
            "num_calls": NUM_CALLS,
            "ways": [way.to_json() for way in self.ways],
        }


def study_rmsnorm(
    device: str, out: Path, progress: Callable[[Way], None] | None = None
) -> NormStudy:
    """Measure all ways on ``device`` (``cpu``, ``cuda``, ``neuron``, ``sim:trn2``).

    Files go to a folder a way in ``out``. Raises :class:`CaptureError` where a way fails.
    """
    if find_spec("torch") is None:
        raise CaptureError("the study needs torch", hint="install it: pip install torch")
    if device.startswith(simulation.PREFIX):
        simulation.parse_target(device, None, numerics=True)
    ways: list[MeasuredWay] = []
    simulated_by: str | None = None
    for way in Way:
        if progress is not None:
            progress(way)
        folder = out / way.value.replace(" ", "-")
        trace = _run(way, device, folder)
        opened = open_profile(trace)
        simulated_by = opened.simulated_by
        first = ways[0] if ways else None
        ways.append(_measured(way, opened, folder, trace, first))
    return NormStudy(device, simulated_by, tuple(ways))


def _run(way: Way, device: str, folder: Path) -> Path:
    """Measure in a child process; the trace that it wrote."""
    folder.mkdir(parents=True, exist_ok=True)
    before = set(folder.glob("*.pt.trace.json"))
    module = "trnscope.study.rmsnorm.measure"
    done = subprocess.run(
        [sys.executable, "-m", module, way.value, device, str(folder)],
        capture_output=True,
        text=True,
        check=False,
        env={"KINETO_LOG_LEVEL": KINETO_QUIET, **os.environ},
    )
    traces = sorted(set(folder.glob("*.pt.trace.json")) - before)
    if done.returncode != 0 or not traces:
        said = [line for line in done.stderr.splitlines() if line.strip()]
        raise CaptureError(
            f"{way.value} cannot be measured on {device}: {said[-1] if said else 'no trace'}"
        )
    return traces[-1]


def _measured(
    way: Way, opened: OpenedProfile, folder: Path, path: Path, first: MeasuredWay | None
) -> MeasuredWay:
    trace = opened.traces[0]
    works = device_work(trace)
    kernels = sum(_num_kernels(trace, work.slices) for work in works)
    result = np.load(folder / RESULT_FILE)
    reference = result if first is None else np.load(first.trace.parent / RESULT_FILE)
    return MeasuredWay(
        way=way,
        executions=kernels / NUM_CALLS if works else None,
        hbm_bytes=_hbm_bytes(trace),
        device_ns=round(sum(work.busy.total for work in works) / NUM_CALLS) if works else None,
        host_ns=round(_host_ns(opened) / NUM_CALLS),
        call_ns=_call_ns(opened),
        max_difference=float(np.max(np.abs(result - reference))),
        table=(folder / TABLE_FILE).read_text(encoding="utf-8"),
        trace=path,
    )


def _num_kernels(trace: Trace, slices: np.ndarray[tuple[int], np.dtype[np.uint32]]) -> int:
    return int(np.count_nonzero(trace.slices.kind[slices] == SliceKind.KERNEL))


def _hbm_bytes(trace: Trace) -> int | None:
    """What the kernels read and write, a call; absent where their rows do not say."""
    found = [
        args[READ_BYTES] + args[WRITTEN_BYTES]
        for work in device_work(trace)
        for args in map(trace.args, work.slices.tolist())
        if READ_BYTES in args
    ]
    return round(sum(found) / NUM_CALLS) if found else None


def _host_ns(opened: OpenedProfile) -> int:
    """Self time of ops and runtime calls, but of those that wait for the device."""
    rows = opened.ops(python=False).rows
    return sum(
        row.self_cpu_ns for row in rows if not row.key.is_annotation and not _WAIT.search(row.name)
    )


def _call_ns(opened: OpenedProfile) -> int:
    durations = [step.duration_ns for step in opened.steps().rows]
    return round(sum(durations) / len(durations)) if durations else 0
