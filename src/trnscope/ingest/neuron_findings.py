"""Collects what is wrong with a Neuron profile, or missing in it, and words it for people."""

from __future__ import annotations

import re
from collections.abc import Mapping

from trnscope.ingest.durations import DurationBudget
from trnscope.model.health import Health, HealthWarning

_DROPPED = re.compile(r"(\d+) (?:trace )?(?:events|rows|instructions)\b.*\b(?:dropped|left out)")


class NeuronFindings:
    """The health of one profile while it is read."""

    def __init__(self) -> None:
        self._warnings: list[HealthWarning] = []
        self._complete = True
        self.num_read = 0
        """Events and rows that were read."""
        self.num_unreadable = 0
        """Those that say no name or no usable time."""
        self.num_damaged = 0
        """Events that are no JSON."""
        self.durations = DurationBudget()
        """Which durations of the profile are kept."""

    def note(self, code: str, message: str, count: int = 1, *, loses_data: bool = False) -> None:
        """Add one finding, if it happened at all."""
        if count > 0:
            self._warnings.append(HealthWarning(code, message, count))
            self._complete = self._complete and not loses_data

    def note_impossible(self, count: int, of: str = "") -> None:
        """Add events whose durations are damaged; ``of`` names where, with a colon."""
        message = f"{of}{count} rows that would last for years (kept apart, without a duration)"
        self.note("impossible-duration", message, count, loses_data=True)

    def note_skipped(self, count: int, first: int | None) -> None:
        """Add events of a JSON document that are no JSON."""
        message = f"{count} events are damaged and were passed over, the first at character {first}"
        self.note("damaged-event", message, count, loses_data=True)
        self.num_damaged += count

    def note_message(self, message: str) -> None:
        """Add what the profiler itself said; lost events make the profile incomplete."""
        text = message.removeprefix("Warning: ").strip()
        dropped = _DROPPED.search(text)
        if dropped is None:
            self.note("profiler-warning", f"the profiler says: {text}")
        else:
            self.note("events-dropped", text, int(dropped[1]) or 1, loses_data=True)

    def note_damaged(self, damaged: Mapping[str, str]) -> None:
        """Add files that could not be read, or not to their end."""
        for name, problem in damaged.items():
            self.note("unreadable-table", f"{name}: {problem}", loses_data=True)

    def health(self) -> Health:
        """The outcome."""
        unreadable, untimed = self.num_unreadable, "without a name or a usable time left out"
        self.note("unreadable-event", f"{unreadable} rows {untimed}", unreadable, loses_data=True)
        return Health(
            complete=self._complete,
            num_events_read=self.num_read,
            num_events_repaired=0,
            num_events_unreadable=unreadable + self.num_damaged,
            warnings=tuple(self._warnings),
        )
