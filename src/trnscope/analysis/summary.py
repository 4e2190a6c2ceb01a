"""What is in a profile and where its time went, on one page."""

from __future__ import annotations

from dataclasses import dataclass

from trnscope.analysis.devices import DeviceSummary, summarize_devices
from trnscope.analysis.engines import EngineSummary, engines
from trnscope.analysis.health import HealthReport, health
from trnscope.analysis.reported import ReportedFigures, reported_figures
from trnscope.analysis.span import span_ns
from trnscope.analysis.steps import StepSummary, summarize_steps
from trnscope.model.source import TraceSource
from trnscope.store.profile import Profile


@dataclass(frozen=True)
class Summary:
    """The answer of ``trnscope summary``. Times in ns."""

    sources: tuple[TraceSource, ...]
    health: HealthReport
    span_ns: int
    """First start to last end of real work; see :func:`trnscope.analysis.span.span_ns`."""
    devices: tuple[DeviceSummary, ...]
    """Empty where no device work was recorded."""
    steps: tuple[StepSummary, ...]
    engines: tuple[EngineSummary, ...] = ()
    """Engines and DMA queues, where a device profile was recorded."""
    reported: tuple[ReportedFigures, ...] = ()
    """What the profiler itself worked out."""

    def to_json(self) -> dict[str, object]:
        """The document that design.md fixes for ``summary``.

        ``engines`` and ``reported`` are members only where a profile has any.
        """
        more = {
            "engines": [engine.to_json() for engine in self.engines],
            "reported": [block.to_json() for block in self.reported],
        }
        return self._document() | {key: rows for key, rows in more.items() if rows}

    def _document(self) -> dict[str, object]:
        return {
            "schema": 1,
            "sources": [
                {
                    "path": source.path,
                    "format": source.format,
                    "rank": source.rank,
                    "num_events": source.num_events,
                    "simulated_by": source.simulated_by,
                }
                for source in self.sources
            ],
            "health": self.health.health_json(),
            "span_ns": self.span_ns,
            "devices": [device.to_json() for device in self.devices],
            "steps": [step.to_json() for step in self.steps],
        }


def summarize(profile: Profile) -> Summary:
    """Sources, health, span, devices and steps of a profile."""
    numbered = list(enumerate(profile.traces))
    return Summary(
        sources=tuple(trace.source for trace in profile.traces),
        health=health(profile),
        span_ns=span_ns(profile),
        devices=tuple(row for i, trace in numbered for row in summarize_devices(trace, i)),
        steps=tuple(row for i, trace in numbered for row in summarize_steps(trace, i)),
        engines=engines(profile),
        reported=reported_figures(profile),
    )
