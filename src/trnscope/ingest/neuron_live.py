"""Events that the Neuron runtime hands out while it runs: starts and stops, to be paired.

Shape as ``nrt_sys_trace_fetch_events`` of libnrt returns it (data version 2).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trnscope.ingest.neuron_event import SystemEvent, event_from
from trnscope.ingest.neuron_values import as_int, as_object, as_text

_Key = tuple[str, int | None, str]


class LiveEvents:
    """Pairs starts and stops by their tracking id."""

    def __init__(self) -> None:
        self._open: dict[_Key, list[dict[str, Any]]] = {}
        self.events: list[SystemEvent] = []
        """What is complete so far."""
        self.num_unmatched = 0
        """Stops without a start."""
        self.num_unreadable = 0

    def add(self, row: Mapping[str, Any]) -> None:
        """Take one record."""
        fields = _as_event(row)
        name, phase = fields.get("name"), as_text(row.get("phase"))
        if name is None or fields["timestamp"] is None:
            self.num_unreadable += 1
            return
        key = (name, as_int(row.get("tracking_id")), str(fields["process_id"]))
        if phase == "start":
            self._open.setdefault(key, []).append(fields)
        elif phase == "stop":
            self._close(key, fields)
        else:
            self._keep({**fields, "duration": 0})

    def finish(self) -> int:
        """Keep what was never stopped as unfinished; how many there are."""
        left = [fields for waiting in self._open.values() for fields in waiting]
        for fields in left:
            self._keep(fields)
        self._open.clear()
        return len(left)

    def _close(self, key: _Key, stop: Mapping[str, Any]) -> None:
        waiting = self._open.get(key)
        if not waiting:
            self.num_unmatched += 1
            return
        start = waiting.pop()
        duration = max(stop["timestamp"] - start["timestamp"], 0)
        # A stop may tell more than its start did; what the start says about its time counts.
        self._keep({**stop, **start, "duration": duration})

    def _keep(self, fields: Mapping[str, Any]) -> None:
        event = event_from(fields)
        if event is None:
            self.num_unreadable += 1
        else:
            self.events.append(event)


def _as_event(row: Mapping[str, Any]) -> dict[str, Any]:
    """The record with the names that the other documents use; unknown members stay."""
    data = {key: value for key, value in as_object(row.get("data")).items() if value is not None}
    return {
        **data,
        **{key: value for key, value in row.items() if key not in ("data", "phase")},
        "name": as_text(row.get("event_type")),
        "timestamp": as_int(row.get("timestamp_ns")),
        "process_id": row.get("process_id", row.get("pid", "runtime")),
    }
