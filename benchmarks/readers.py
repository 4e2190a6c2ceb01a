"""How each reader is started on a trace, and whether what it answers is right."""

from __future__ import annotations

import json
import math
import shutil
import subprocess
import sys
import venv
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.expected import Expected, sums
from benchmarks.process import ProcessRun, run

HERE = Path(__file__).parent
DATA = HERE / "data"
CACHE = DATA / "cache"
HTA_PACKAGES = ("HolisticTraceAnalysis==0.5.0", "pandas<3")
MSGSPEC_SINGLE = ("whole", "windows")
MSGSPEC_WAYS = (*MSGSPEC_SINGLE, "processes")
DEVICE_CATEGORIES = ("kernel", "gpu_memcpy", "gpu_memset")
_WRITERS_ROWS = ("Trace",)
"""HTA drops the profiler's own row."""


class WrongAnswer(Exception):
    """A reader answered something that is not in the generated file."""


@dataclass(frozen=True)
class OpenedRun:
    """A fresh process that opened an indexed trace, and what it timed inside."""

    process: ProcessRun
    open_seconds: float
    group_by_seconds: float


def clear_cache() -> None:
    """Forget all indices of ours."""
    shutil.rmtree(CACHE, ignore_errors=True)


def index_bytes() -> int:
    """Size of the indices in our cache."""
    return sum(path.stat().st_size for path in CACHE.rglob("*") if path.is_file())


def run_ops(trace: Path, expected: Expected) -> ProcessRun:
    """``trnscope ops TRACE --json``, with whatever is in the cache."""
    command = (Path(sys.executable).with_name("trnscope"), "ops", trace, "--json")
    finished = run(command, {"TRNSCOPE_CACHE_DIR": str(CACHE)})
    _check_ops(json.loads(finished.output), expected)
    return finished


def run_opened(trace: Path, expected: Expected) -> OpenedRun:
    """Open the indexed trace from Python and group its slices."""
    command = (sys.executable, "-m", "benchmarks.opened", trace)
    finished = run(command, {"TRNSCOPE_CACHE_DIR": str(CACHE), "PYTHONPATH": str(HERE.parent)})
    answer = json.loads(finished.output)
    _equal("events", answer["num_events"], expected.num_events)
    _equal("slices", answer["num_slices"], expected.num_slices)
    groups = [(g.category, g.name, g.count, g.total_ns) for g in expected.groups]
    _equal("groups", sorted(tuple(group) for group in answer["groups"]), sorted(groups))
    return OpenedRun(finished, answer["open_seconds"], answer["group_by_seconds"])


def run_msgspec(way: str, trace: Path, expected: Expected) -> ProcessRun:
    """The msgspec reader, one of its ways."""
    finished = run((sys.executable, HERE / "peers" / "msgspec_reader.py", way, trace))
    answer = json.loads(finished.output)
    _equal("events", answer["num_events"], expected.num_events)
    _check_groups(answer["groups"], expected, ())
    return finished


def run_hta(trace: Path, expected: Expected) -> ProcessRun:
    """HTA, in its own environment."""
    finished = run((hta_python(), HERE / "peers" / "hta_reader.py", trace.resolve()))
    answer = json.loads(finished.output)
    _check_groups(answer["groups"], expected, _WRITERS_ROWS)
    kernels: dict[str, float] = {}
    for row in answer["kernels"]:
        kernels[row["name"]] = kernels.get(row["name"], 0.0) + row["sum (us)"]
    for name, (_, total_ns) in sums(expected.groups, ("kernel",)).items():
        _close(f"kernel {name}", kernels.get(name, 0.0), total_ns)
    return finished


def hta_python() -> Path:
    """The interpreter of HTA's environment, made on first use."""
    folder = DATA / "hta-venv"
    python = folder / "bin" / "python"
    if not (folder / "ready").exists():
        print("making the environment for HTA", file=sys.stderr)
        venv.create(folder, with_pip=True, clear=True)
        subprocess.run([python, "-m", "pip", "install", "-q", *HTA_PACKAGES], check=True)
        (folder / "ready").touch()
    return python


def _check_ops(document: dict[str, Any], expected: Expected) -> None:
    wanted = sums(expected.calls)
    found = dict.fromkeys(wanted, (0, 0))
    for row in document["ops"]:
        if row["name"] in found:
            count, total = found[row["name"]]
            found[row["name"]] = (count + row["calls"], total + row["cpu_total_ns"])
    for name in wanted:
        _equal(f"op {name}", found[name], wanted[name])
    device = sum(row["self_device_ns"] or 0 for row in document["ops"])
    device += document["unattributed_device_ns"] or 0
    work = sums(expected.groups, DEVICE_CATEGORIES).values()
    _equal("device time", device, sum(total for _, total in work))


def _check_groups(groups: list[list[Any]], expected: Expected, dropped: tuple[str, ...]) -> None:
    found = {(category, name): (count, total) for category, name, count, total in groups}
    wanted = [group for group in expected.groups if group.category not in dropped]
    _equal("number of groups", len(found), len(wanted))
    for group in wanted:
        count, total_us = found.get((group.category, group.name), (0, 0.0))
        _equal(f"calls of {group.name}", count, group.count)
        _close(f"time of {group.name}", total_us, group.total_ns)


def _equal(what: str, found: object, wanted: object) -> None:
    if found != wanted:
        raise WrongAnswer(f"{what}: {str(found)[:300]} instead of {str(wanted)[:300]}")


def _close(what: str, found_us: float, wanted_ns: int) -> None:
    """Sums of floating-point microseconds: equal to the nanosecond up to rounding."""
    if not math.isclose(found_us * 1000, wanted_ns, rel_tol=1e-9, abs_tol=1.0):
        raise WrongAnswer(f"{what}: {found_us} us instead of {wanted_ns} ns")
