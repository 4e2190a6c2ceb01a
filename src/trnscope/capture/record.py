"""What one process recorded, what it skipped and what the recording cost: ``*.capture.json``."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from statistics import median
from typing import Any

from trnscope.errors import TraceFormatError

SCHEMA = 1
SUFFIX = ".capture.json"


@dataclass(frozen=True)
class Overhead:
    """What profiling cost this process. Times in ns; absent means not measured.

    A step is timed on the host, from the end of the step before it. ``profiled_step_ns`` is
    the median over the recorded steps. ``unprofiled_step_ns`` is the median over steps of the
    same run that were not recorded: those after the window where there are three or more,
    else the last ones before it.
    """

    profiled_step_ns: int | None = None
    unprofiled_step_ns: int | None = None
    num_profiled_steps: int = 0
    num_unprofiled_steps: int = 0
    profiled_range_ns: tuple[int, int] | None = None
    """The shortest and the longest recorded step."""
    unprofiled_range_ns: tuple[int, int] | None = None
    """The same over the steps compared with."""
    start_ns: int | None = None
    stop_ns: int | None = None
    export_ns: int | None = None

    @property
    def slowdown_ratio(self) -> float | None:
        """How much longer a profiled step took, as a share of an unprofiled one."""
        if self.profiled_step_ns is None or not self.unprofiled_step_ns:
            return None
        return self.profiled_step_ns / self.unprofiled_step_ns - 1.0

    @property
    def total_ns(self) -> int | None:
        """Time to start, stop and write, which the script waited for besides."""
        parts = (self.start_ns, self.stop_ns, self.export_ns)
        known = [part for part in parts if part is not None]
        return sum(known) if known else None

    @property
    def slowdown_is_clear(self) -> bool | None:
        """Whether the slowdown stands out from how much steps vary by themselves.

        It does when the median recorded step took longer than every step without recording,
        and the median step without took less than every recorded one.
        """
        if self.profiled_range_ns is None or self.unprofiled_range_ns is None:
            return None
        if self.profiled_step_ns is None or self.unprofiled_step_ns is None:
            return None
        return (
            self.profiled_step_ns > self.unprofiled_range_ns[1]
            and self.unprofiled_step_ns < self.profiled_range_ns[0]
        )


def range_ns(durations: Sequence[int]) -> tuple[int, int] | None:
    """The least and the greatest, or None for no durations."""
    return (min(durations), max(durations)) if durations else None


def median_ns(durations: Sequence[int]) -> int | None:
    """The median in whole ns, or None for no durations."""
    return round(median(durations)) if durations else None


@dataclass(frozen=True)
class CaptureRecord:
    """One process of one run. Step numbers count from 0, as torch's ``ProfilerStep#N`` does."""

    pid: int
    trace: Path | None = None
    """The trace file; None when nothing was recorded, and ``reason`` then says why."""
    reason: str | None = None
    """Why there is no trace, or why it holds less than was asked for."""
    hint: str | None = None
    """What to do about the reason, where the script itself went well."""
    rank: int | None = None
    world_size: int | None = None
    is_root: bool = False
    """Whether this is the process that ``trnscope run`` itself started."""
    device: str | None = None
    """The simulated device that it ran on, as in ``sim:trn2``; None: the real ones. The times of
    steps are virtual then, and recording adds nothing to them."""
    num_launches: int | None = None
    """Programs and copies that the process gave the simulated device; None on real devices."""
    steps_by: str | None = None
    """``optimizer``, ``forward`` or ``time``; None when no step was seen."""
    first_step: int | None = None
    num_steps: int = 0
    """Steps recorded from start to end."""
    last_step_cut: bool = False
    """Whether the trace ends inside a step."""
    num_steps_seen: int = 0
    activities: tuple[str, ...] = ()
    with_stack: bool = False
    shapes: bool = False
    memory: bool = False
    num_cpus: int | None = None
    """Processors that the process may run on."""
    num_threads: int | None = None
    """Threads that one op of torch may use on the CPU."""
    num_workers: int | None = None
    """Worker processes of its data loaders when recording ended."""
    torch_version: str | None = None
    python_version: str | None = None
    command: tuple[str, ...] = ()
    run: str | None = None
    """Which ``trnscope run`` the process belongs to; None for ``trnscope.profile``."""
    overhead: Overhead = field(default_factory=Overhead)

    def to_json(self) -> dict[str, Any]:
        """As written to the file; ``trace`` is a name beside it."""
        document: dict[str, Any] = {"schema": SCHEMA, **asdict(self)}
        document["trace"] = None if self.trace is None else self.trace.name
        document["overhead"]["slowdown_ratio"] = self.overhead.slowdown_ratio
        document["overhead"]["slowdown_is_clear"] = self.overhead.slowdown_is_clear
        return document

    @staticmethod
    def from_json(document: dict[str, Any], folder: Path) -> CaptureRecord:
        """Read :meth:`to_json`'s document, found in ``folder``; unknown members are ignored."""
        values = _known(CaptureRecord, document)
        values["trace"] = None if values.get("trace") is None else folder / values["trace"]
        values["overhead"] = _overhead(values.get("overhead", {}))
        for name in ("activities", "command"):
            values[name] = tuple(values.get(name, ()))
        return CaptureRecord(**values)

    def write(self, path: Path) -> None:
        """Write or replace ``path``, whole or not at all."""
        text = json.dumps(self.to_json(), indent=2)
        unfinished = path.with_name(f".{path.name}.{os.getpid()}")
        unfinished.write_text(text + "\n", encoding="utf-8")
        unfinished.replace(path)

    @staticmethod
    def read(path: Path) -> CaptureRecord:
        """Read one ``*.capture.json``."""
        try:
            document = json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise TraceFormatError(path, f"no capture record: {error}") from error
        if not isinstance(document, dict) or "pid" not in document:
            raise TraceFormatError(path, "no capture record")
        if document.get("schema", 0) > SCHEMA:
            raise TraceFormatError(
                path, f"written by version {document['schema']}", hint="update trnscope"
            )
        return CaptureRecord.from_json(document, path.parent)


def _overhead(document: dict[str, Any]) -> Overhead:
    values = _known(Overhead, document)
    for name in ("profiled_range_ns", "unprofiled_range_ns"):
        values[name] = None if values.get(name) is None else tuple(values[name])
    return Overhead(**values)


def _known(kind: type, document: dict[str, Any]) -> dict[str, Any]:
    names = {member.name for member in fields(kind)}
    return {name: value for name, value in document.items() if name in names}


def record_path(trace: Path) -> Path:
    """Where the record of a trace file is kept."""
    stem = trace.name
    for suffix in (".gz", ".json", ".trace", ".pt"):
        stem = stem.removesuffix(suffix)
    return trace.with_name(stem + SUFFIX)
