"""Places rows on tracks: threads by pid and tid, device work by device and stream."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from trnscope.ingest.kineto import PROFILER_PROCESSES, Header, label_evidence
from trnscope.model.kinds import DeviceKind, TrackKind
from trnscope.model.track import Device, Track
from trnscope.store.tables import I64, U32, Bool
from trnscope.store.writer import TraceWriter

NO_TRACK = 0xFFFFFFFF
MAX_DEVICES = 1024
_DENSE_LIMIT = 1 << 20
_NO_STREAM = 0x7FFFFFFF  # some writers print -1 as an unsigned number
_STREAM = re.compile(r"(?:stream\s*#?)?\s*(\d{1,10})\s*$", re.IGNORECASE)
_LAST_NUMBER = re.compile(r"(?<!\d)(\d{1,10})\D*$")


@dataclass
class TrackNames:
    """What metadata events say, keyed by pid or by (pid, tid), as text."""

    process_name: dict[str, str]
    process_label: dict[str, str]
    thread_name: dict[tuple[str, str], str]
    process_sort: dict[str, int]
    thread_sort: dict[tuple[str, str], int]


@dataclass
class _Draft:
    """A track whose names and device family are not known before the end."""

    kind: TrackKind
    process: str
    thread: str
    device: int | None = None
    stream: int | None = None


class TrackTable:
    """Maps the scanner's tracks to the writer's.

    One scanner track can be several tracks of ours: a process numbered like a device may
    hold host rows (Python frames under pid 0, tid 0) besides that device's rows.
    """

    def __init__(self, writer: TraceWriter, texts: Callable[[], Sequence[tuple[str, str]]]) -> None:
        self._writer = writer
        self._texts = texts
        self._known: Sequence[tuple[str, str]] = ()
        self._drafts: list[_Draft] = []
        self._ids: dict[tuple[Any, ...], int] = {}
        self.host_table = np.empty(0, np.uint32)
        """By scanner track: the host track, ``NO_TRACK`` where none was needed yet."""
        self._device_by_place: dict[tuple[str, str], int] = {}
        self._stream_given: set[int] = set()
        """Tracks whose stream is not only told by their tid."""

    def text(self, scanned: int) -> tuple[str, str]:
        """Pid and tid of a scanner track, as text."""
        if scanned >= len(self._known):
            self._known = self._texts()
        return self._known[scanned]

    def host(self, scanned: U32) -> U32:
        """The threads of host rows."""
        top = int(scanned.max()) + 1 if scanned.size else 0
        if top > self.host_table.size:
            grown = np.full(max(top, 2 * self.host_table.size), NO_TRACK, np.uint32)
            grown[: self.host_table.size] = self.host_table
            self.host_table = grown
        tracks = self.host_table[scanned]
        missing = tracks == NO_TRACK
        if missing.any():
            for one in np.unique(scanned[missing]).tolist():
                self.host_table[one] = self._host_track(one)
            tracks = self.host_table[scanned]
        return tracks

    def _host_track(self, scanned: int) -> int:
        process, thread = self.text(scanned)
        own = process in PROFILER_PROCESSES or process == "-1"
        kind = TrackKind.PROFILER if own else TrackKind.CPU_THREAD
        return self._id(("host", process, thread), _Draft(kind, process, thread))

    def device(
        self, scanned: U32, device: I64, has_device: Bool, stream: I64, has_stream: Bool
    ) -> U32:
        """The streams of device rows; ``device`` and ``stream`` count where given."""
        usable = has_device & (device >= 0) & (device < MAX_DEVICES)
        place = scanned.astype(np.int64) * (MAX_DEVICES + 1) + np.where(usable, device + 1, 0)
        is_real = has_stream & (stream >= 0) & (stream < _NO_STREAM)
        places, _, at_place = _distinct(place)
        streams, _, at_stream = _distinct(np.where(is_real, stream + 1, 0))
        unique, _, inverse = _distinct(at_place * streams.size + at_stream)
        tracks = np.empty(unique.size, np.uint32)
        for i in range(unique.size):
            at, known = divmod(int(unique[i]), streams.size)
            track, given = divmod(int(places[at]), MAX_DEVICES + 1)
            number = int(streams[known])
            tracks[i] = self._device_track(
                track, given - 1 if given else None, number - 1 if number else None
            )
        return tracks[inverse]

    def _device_track(self, scanned: int, device: int | None, stream: int | None) -> int:
        """The track of a stream. Rows that give none lie on the first of their pid and tid."""
        process, thread = self.text(scanned)
        index = self.device_index(process) if device is None else device
        number = _STREAM.match(thread)
        in_thread = int(number[1]) if number else None
        place = ("device", index, process, thread if in_thread is None else in_thread)
        shown = in_thread if stream is None else stream
        if shown is not None and shown >= _NO_STREAM:
            shown = None
        draft = _Draft(TrackKind.DEVICE_STREAM, process, thread, index, shown)
        first = self._id(place, draft)
        self._device_by_place[process, thread] = first
        if stream is None:
            return first
        if first not in self._stream_given:
            self._stream_given.add(first)
            self._drafts[first].stream = stream
        if self._drafts[first].stream == stream:
            return first
        return self._id((*place, stream), draft)

    def device_index(self, process: str) -> int:
        """The device that a process id stands for; 0 where it names none."""
        number = _LAST_NUMBER.search(process)
        index = int(number[1]) if number else 0
        return index if index < MAX_DEVICES else 0

    def device_of(self, track: int) -> int | None:
        """The device index of a track of ours."""
        return self._drafts[track].device

    def is_host_process(self, process: str) -> bool:
        """Whether host rows were placed under this pid."""
        return any(
            draft.process == process and draft.kind is TrackKind.CPU_THREAD
            for draft in self._drafts
        )

    def counter(self, scanned: int) -> int:
        """The counters of a process."""
        process, _ = self.text(scanned)
        return self._id(("counter", process), _Draft(TrackKind.COUNTER, process, ""))

    def asynchronous(self, scanned: U32, category: Callable[[int], str], categories: U32) -> U32:
        """The async tracks of rows: one per process and category."""
        tracks = np.empty(scanned.size, np.uint32)
        pairs = np.stack((scanned, categories), axis=1)
        unique, inverse = np.unique(pairs, axis=0, return_inverse=True)
        ids = []
        for one, category_id in unique.tolist():
            process, _ = self.text(one)
            name = category(category_id) or "async"
            draft = _Draft(TrackKind.ASYNC, process, name)
            ids.append(self._id(("async", process, name), draft))
        tracks[:] = np.array(ids, np.uint32)[inverse.reshape(-1)]
        return tracks

    def flow_ends(self, scanned: U32, prefers_device: Bool) -> U32:
        """The tracks that flow ends lie on: where a pid and tid are both, as preferred."""
        unique, _, inverse = _distinct(scanned)
        host, device = np.empty(unique.size, np.uint32), np.empty(unique.size, np.uint32)
        for i, one in enumerate(unique.tolist()):
            on_host = self._ids.get(("host", *self.text(one)))
            on_device = self._device_by_place.get(self.text(one))
            if on_host is None:
                on_host = self._host_track(one) if on_device is None else on_device
            host[i] = on_host
            device[i] = on_host if on_device is None else on_device
        return np.where(prefers_device, device[inverse], host[inverse])

    def _id(self, key: tuple[Any, ...], draft: _Draft) -> int:
        found = self._ids.get(key)
        if found is None:
            found = self._writer.add_track(Track(draft.kind, draft.process, draft.thread))
            self._ids[key] = found
            self._drafts.append(draft)
        return found

    def finish(self, names: TrackNames, header: Header, family: DeviceKind) -> None:
        """Give every track its names, order and device."""
        for index, draft in enumerate(self._drafts):
            self._writer.set_track(index, _completed(draft, names, header, family))


def _distinct(key: npt.NDArray[Any]) -> tuple[I64, I64, I64]:
    """Distinct keys, rising; the first row of each; and for each row the place of its key."""
    top = int(key.max(initial=0))
    if top >= _DENSE_LIMIT:
        unique, first, inverse = np.unique(key, return_index=True, return_inverse=True)
        return unique.astype(np.int64), first, inverse.reshape(-1)
    first = np.full(top + 1, key.size, np.int64)
    np.minimum.at(first, key, np.arange(key.size))
    unique = np.flatnonzero(first < key.size)
    place = np.zeros(top + 1, np.int64)
    place[unique] = np.arange(unique.size)
    return unique, first[unique], place[key]


def _completed(draft: _Draft, names: TrackNames, header: Header, family: DeviceKind) -> Track:
    place = (draft.process, draft.thread)
    label = names.process_label.get(draft.process)
    name = names.process_name.get(draft.process)
    device = None
    if draft.device is not None:
        kind = label_evidence(label) or label_evidence(name)
        device = Device(
            family if kind is None else kind,
            draft.device,
            header.device_name(draft.device),
            header.simulated,
        )
    is_counter = draft.kind is TrackKind.COUNTER
    sort = names.process_sort.get(draft.process) if is_counter else names.thread_sort.get(place)
    thread_name = names.thread_name.get(place)
    return Track(
        draft.kind,
        draft.process,
        draft.thread,
        name,
        thread_name.strip() if thread_name else None,
        sort,
        device,
        draft.stream,
    )
