"""Reads metadata events (ph M): names and order of processes and threads; the last one wins."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from trnscope.ingest.rows import Segment, dense
from trnscope.ingest.tracks import TrackNames, TrackTable
from trnscope.ingest.vocabulary import NameTable, Text

_EVENTS = {
    "process_name": 1,
    "process_labels": 2,
    "process_sort_index": 3,
    "thread_name": 4,
    "thread_sort_index": 5,
}
_VALUE_KEYS = {1: "name", 2: "labels", 3: "sort_index", 4: "name", 5: "sort_index"}
_OF_PROCESS = (1, 2, 3)


class MetadataReader:
    """Collects metadata events; a file may hold hundreds of thousands of them."""

    def __init__(self, text: Text, tracks: TrackTable) -> None:
        self._text = text
        self._tracks = tracks
        self._event = NameTable(text, lambda name: _EVENTS.get(name, 0))
        self._process_ids: dict[str, int] = {}
        self._process_of_track: list[int] = []
        self._found: dict[int, dict[int, int]] = {code: {} for code in _VALUE_KEYS}

    def add(self, segment: Segment, at: npt.NDArray[Any]) -> None:
        """Note the metadata events in these rows."""
        codes = self._event.of(segment.name[at])
        for code in np.flatnonzero(np.bincount(codes, minlength=1)).tolist():
            if code == 0:
                continue
            chosen = at[codes == code]
            values, has = dense(segment, _VALUE_KEYS[code], chosen)
            owner = segment.track[chosen][has]
            if code in _OF_PROCESS:
                owner = self._processes(owner)
            # A later pair replaces an earlier one.
            self._found[code].update(zip(owner.tolist(), values[has].tolist(), strict=True))

    def _processes(self, scanned: npt.NDArray[Any]) -> npt.NDArray[Any]:
        top = int(scanned.max()) + 1 if scanned.size else 0
        for track in range(len(self._process_of_track), top):
            process, _ = self._tracks.text(track)
            number = self._process_ids.setdefault(process, len(self._process_ids))
            self._process_of_track.append(number)
        return np.take(np.array(self._process_of_track, np.int64), scanned)

    def names(self) -> TrackNames:
        """All that was found, as text."""
        processes = list(self._process_ids)
        name, label, process_sort, thread, thread_sort = (self._found[code] for code in range(1, 6))
        return TrackNames(
            process_name={processes[i]: self._text(value) for i, value in name.items()},
            process_label={processes[i]: self._text(value) for i, value in label.items()},
            thread_name={self._tracks.text(i): self._text(v) for i, v in thread.items()},
            process_sort={processes[i]: value for i, value in process_sort.items()},
            thread_sort={self._tracks.text(i): value for i, value in thread_sort.items()},
        )
