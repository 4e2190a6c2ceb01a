"""A profile that answers: each question is a method, computed by the analysis of that name."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from trnscope.errors import TraceFormatError
from trnscope.store.profile import Profile

if TYPE_CHECKING:
    from trnscope.advisor.finding import Explanation
    from trnscope.advisor.recording import Recording
    from trnscope.analysis.attribution import Attribution
    from trnscope.analysis.breakdown import Breakdown
    from trnscope.analysis.compare import Comparison
    from trnscope.analysis.health import HealthReport
    from trnscope.analysis.kernels import KernelsTable
    from trnscope.analysis.launch import LaunchReport
    from trnscope.analysis.memory import MemoryReport
    from trnscope.analysis.ops import OpsTable
    from trnscope.analysis.overlap import Overlap
    from trnscope.analysis.roofline import Roofline
    from trnscope.analysis.steps import Steps
    from trnscope.analysis.summary import Summary
    from trnscope.analysis.window import Window
    from trnscope.store.sql import QueryResult


@dataclass(frozen=True)
class OpenedProfile(Profile):
    """What ``trnscope.open`` returns. A method loads its analysis when it is first called."""

    def summary(self) -> Summary:
        """Files, health, devices and steps."""
        from trnscope.analysis.summary import summarize

        return summarize(self)

    def breakdown(self) -> Breakdown:
        """Each step, split into parts that add up to it."""
        from trnscope.analysis.breakdown import breakdown

        return breakdown(self)

    def steps(self) -> Steps:
        """Each step's duration and device time."""
        from trnscope.analysis.steps import steps

        return steps(self)

    def ops(
        self, group_by: str = "name", *, python: bool = True, stack_depth: int | None = None
    ) -> OpsTable:
        """Time by op; ``group_by`` is ``name``, ``shape``, ``stack`` or ``module``."""
        from trnscope.analysis.ops import ops

        return ops(self, group_by, python=python, stack_depth=stack_depth)

    def annotations(self, *, same_thread_only: bool = False) -> Attribution:
        """Device time by the program's own ranges.

        ``same_thread_only`` leaves out what other threads launched for them, backward mostly.
        """
        from trnscope.analysis.attribution import attribute_device_time

        return attribute_device_time(self, same_thread_only=same_thread_only)

    def kernels(self, group_by: str = "name") -> KernelsTable:
        """Device work; ``group_by`` is ``name``, ``device`` or ``stream``."""
        from trnscope.analysis.kernels import kernels

        return kernels(self, group_by)

    def overlap(self) -> Overlap:
        """What of communication and copying hides behind compute."""
        from trnscope.analysis.overlap import overlap

        return overlap(self)

    def launches(self) -> LaunchReport:
        """Launch latency, delay and queue length."""
        from trnscope.analysis.launch import launches

        return launches(self)

    def memory(self) -> MemoryReport:
        """Memory over time, by device."""
        from trnscope.analysis.memory import memory

        return memory(self)

    def roofline(
        self,
        hardware: str | None = None,
        *,
        peak_flops: float | None = None,
        peak_bandwidth: float | None = None,
    ) -> Roofline:
        """Each op against the peaks of the device, which ``hardware`` names or numbers give."""
        from trnscope.analysis.roofline import roofline

        return roofline(self, hardware, peak_flops=peak_flops, peak_bandwidth=peak_bandwidth)

    def compare(self, after: Profile) -> Comparison:
        """What differs in another profile of the same work; this one is the one before."""
        from trnscope.analysis.compare import compare

        return compare(self, after)

    def health(self) -> HealthReport:
        """How far the figures can be trusted."""
        from trnscope.analysis.health import health

        return health(self)

    def window(self, start_ns: int, end_ns: int) -> Window:
        """Device use and time by name in a stretch of time, ns from the start of real work."""
        from trnscope.analysis.window import window

        return window(self, start_ns, end_ns)

    def explain(self, *, step: int | None = None) -> Explanation:
        """Why a step takes as long as it does: causes, with the time each would give back.

        ``step`` looks at the step of that number alone.
        """
        return explain_profile(self, step=step)

    def sql(self, query: str) -> QueryResult:
        """The rows of one SELECT over the views of docs/reference/sql-views.md."""
        from trnscope.store.sql import connect

        with connect(self) as session:
            return session.query(query)


def explain_profile(profile: Profile, *, step: int | None = None) -> Explanation:
    """Diagnose a profile, with what ``trnscope run`` noted beside its traces."""
    from trnscope.advisor.explain import explain

    recordings = [_recording_of(Path(trace.source.path)) for trace in profile.traces]
    return explain(profile, step=step, recordings=recordings)


def _recording_of(trace: Path) -> Recording | None:
    from trnscope.advisor.recording import Recording
    from trnscope.capture.record import CaptureRecord, record_path

    path = record_path(trace)
    try:
        record = CaptureRecord.read(path) if path.is_file() else None
    except TraceFormatError:
        return None
    if record is None:
        return None
    return Recording(
        slowdown_ratio=record.overhead.slowdown_ratio,
        slowdown_is_clear=bool(record.overhead.slowdown_is_clear),
        num_cpus=record.num_cpus,
        num_threads=record.num_threads,
        num_workers=record.num_workers,
        world_size=record.world_size,
    )
