"""Writes a trace as Chrome-trace JSON that trnscope, Perfetto and torch's tools open again.

Every time is exact to the nanosecond (decimal microseconds). Slices, args, flows, counters,
instants, allocator events, unfinished slices, names and the header's members are written; a
trace of a format without args gets them from its attributes.
"""

from __future__ import annotations

import itertools
import json
import math
import mmap
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from trnscope.errors import TraceFormatError
from trnscope.model.categories import TORCH_CATEGORY
from trnscope.model.kinds import DeviceKind, SliceKind, TrackKind
from trnscope.model.track import Track
from trnscope.store.attributes import ATTRIBUTES
from trnscope.store.reader import Trace
from trnscope.store.tables import I64, U32

_ROWS_PER_CHUNK = 50_000
_CHROME_FORMATS = ("kineto", "chrome")
_NO_ARGS = ""

# Spelling of the attributes in torch's args.
ARG_NAMES: dict[str, str] = {
    "correlation": "correlation",
    "external_id": "External id",
    "sequence_number": "Sequence number",
    "forward_thread": "Fwd thread id",
    "stream": "stream",
    "device": "device",
    "bytes": "bytes",
    "flops": "flops",
    "collective_seq": "Seq",
    "comms_id": "Comms Id",
    "in_nelems": "In msg nelems",
    "out_nelems": "Out msg nelems",
    "group_size": "Group size",
    "graph_id": "graph id",
    "graph_node_id": "graph node id",
    "input_dims": "Input Dims",
    "input_types": "Input type",
    "input_strides": "Input Strides",
    "concrete_inputs": "Concrete Inputs",
    "module_hierarchy": "Module Hierarchy",
    "call_stack": "Call stack",
    "collective_name": "Collective name",
    "dtype": "dtype",
    "process_group_name": "Process Group Name",
    "process_group_ranks": "Process Group Ranks",
    "memcpy_kind": "kind",
    "sync_kind": "cuda_sync_kind",
    "grid": "grid",
    "block": "block",
    "finished": "finished",
    "layer": "neuron layer",
    "hlo_name": "hlo_name",
    "source_location": "nki_source_location",
}


def microseconds(ns: int) -> str:
    """Nanoseconds as decimal microseconds, without loss: ``1500`` is ``1.500``."""
    whole, rest = divmod(abs(ns), 1000)
    return f"{'-' if ns < 0 else ''}{whole}.{rest:03d}"


class ChromeJsonWriter:
    """Writes one trace; memory grows by about 20 bytes an event."""

    def __init__(self, trace: Trace, scratch: Path) -> None:
        self._trace = trace
        self._is_chrome = trace.source.format in _CHROME_FORMATS
        self._args = _ArgsSpool(trace, scratch)
        self._places = [_place(track) for track in trace.tracks]
        self._names: dict[int, str] = {}
        self._base_ns = trace.source.base_time_ns
        self.num_events = 0

    @property
    def num_args_left_out(self) -> int:
        """Events whose args were damaged beyond reading."""
        return self._args.num_left_out

    def write(self, file: IO[bytes]) -> None:
        """Write the whole document."""
        with self._args:
            members = [f"{json.dumps(key)}: {text}" for key, text in self._header().items()]
            file.write(("{\n" + "".join(f"{member},\n" for member in members)).encode())
            file.write(b'"traceEvents": [')
            separator = "\n"
            for chunk in _chunked(self._events()):
                file.write((separator + ",\n".join(chunk)).encode("utf-8"))
                self.num_events += len(chunk)
                separator = ",\n"
            file.write(b"\n]\n}\n")

    # Header -------------------------------------------------------------------------------

    def _header(self) -> dict[str, str]:
        """Members beside the events, as JSON text."""
        source, health = self._trace.source, self._trace.health
        members = {
            key: text
            for key, text in source.metadata.items()
            if key not in ("traceEvents", "trnscopeExport") and _is_json(text)
        }
        if not self._is_chrome:
            members["schemaVersion"] = "1"
            members["deviceProperties"] = json.dumps(self._device_properties())
        if self._base_ns:
            members["baseTimeNanoseconds"] = str(self._base_ns)
        if source.rank is not None and source.format != "chrome":
            info = {"rank": source.rank, "world_size": source.world_size}
            members.setdefault("distributedInfo", json.dumps(info))
        members["trnscopeExport"] = json.dumps(
            {
                "source_format": source.format,
                "complete": health.complete,
                "num_events_unreadable": health.num_events_unreadable,
                "simulated": source.simulated,
            }
        )
        return members

    def _device_properties(self) -> list[dict[str, Any]]:
        devices = {track.device for track in self._trace.tracks if track.device is not None}
        return [
            {"id": device.index, "name": device.name or "", "simulated": device.simulated}
            for device in sorted(devices, key=lambda device: device.index)
        ]

    # Events -------------------------------------------------------------------------------

    def _events(self) -> Iterator[str]:
        yield from self._metadata()
        yield from self._slices()
        yield from self._flows()
        yield from self._instants()
        yield from self._memory()
        yield from self._counters()
        yield from self._unfinished()

    def _metadata(self) -> Iterator[str]:
        named: set[str] = set()
        for track, place in zip(self._trace.tracks, self._places, strict=True):
            if track.process_name is not None and track.process not in named:
                named.add(track.process)
                yield _metadata_event("process_name", place, "name", track.process_name)
            if track.thread_name is not None:
                yield _metadata_event("thread_name", place, "name", track.thread_name)
            if track.sort_index is not None:
                word = "process" if track.kind is TrackKind.COUNTER else "thread"
                yield _metadata_event(f"{word}_sort_index", place, "sort_index", track.sort_index)
            if track.device is not None and track.device.kind not in _COMMON_DEVICES:
                label = f"{track.device.kind.name} {track.device.index}"
                yield _metadata_event("process_labels", place, "labels", label)

    def _slices(self) -> Iterator[str]:
        slices = self._trace.slices
        is_async = [track.kind is TrackKind.ASYNC for track in self._trace.tracks]
        categories, places, name_of = self._category_members(), self._places, self._name
        for first in range(0, len(slices), _ROWS_PER_CHUNK):
            rows = slice(first, min(first + _ROWS_PER_CHUNK, len(slices)))
            columns = zip(
                slices.kind[rows].tolist(),
                slices.category[rows].tolist(),
                slices.name[rows].tolist(),
                slices.track[rows].tolist(),
                (slices.start_ns[rows] - self._base_ns).tolist(),
                slices.dur_ns[rows].tolist(),
                self._args.of_slices(rows.start, rows.stop),
                strict=True,
            )
            for i, (kind, category, name, track, start, dur, args) in enumerate(columns, first):
                head = f'{categories[kind, category]}"name":{name_of(name)},{places[track]}'
                if is_async[track]:
                    yield f'{{"ph":"b","id":{i},{head},"ts":{microseconds(start)}{args}}}'
                    yield f'{{"ph":"e","id":{i},{head},"ts":{microseconds(start + dur)}}}'
                    continue
                times = f'"ts":{microseconds(start)},"dur":{microseconds(dur)}'
                yield f'{{"ph":"X",{head},{times}{args}}}'

    def _category(self, kind: int, category: int) -> str:
        own = self._trace.categories[category]
        return own if self._is_chrome else TORCH_CATEGORY.get(kind, own)

    def _category_members(self) -> dict[tuple[int, int], str]:
        """By kind and category: the member ``"cat"`` with its comma, or nothing."""
        pairs = itertools.product(SliceKind, range(len(self._trace.categories)))
        return {
            (int(kind), category): _cat(self._category(kind, category)) for kind, category in pairs
        }

    def _head(self, category: str, name: int, track: int) -> str:
        return f'{_cat(category)}"name":{self._name(name)},{self._places[track]}'

    def _name(self, name: int) -> str:
        text = self._names.get(name)
        if text is None:
            text = self._names[name] = json.dumps(self._trace.strings[name])
        return text

    def _flows(self) -> Iterator[str]:
        slices, flows = self._trace.slices, self._trace.flows
        both = np.concatenate([flows.slice_out, flows.slice_in])
        times = innermost_times(slices.start_ns, slices.end_ns, slices.parent, both)
        times = times - self._base_ns
        tracks = slices.track[both].tolist()
        half = flows.kind.size
        for flow, kind in enumerate(flows.kind.tolist()):
            word = self._name(kind)
            for phase, row in (('"ph":"s"', flow), ('"ph":"f","bp":"e"', flow + half)):
                yield (
                    f'{{{phase},"id":{flow},"cat":{word},"name":{word},'
                    f'{self._places[tracks[row]]},"ts":{microseconds(int(times[row]))}}}'
                )

    def _instants(self) -> Iterator[str]:
        instants = self._trace.instants
        columns = zip(
            instants.ts_ns.tolist(),
            instants.track.tolist(),
            instants.name.tolist(),
            instants.category.tolist(),
            self._args.of_instants(),
            strict=True,
        )
        for ts, track, name, category, args in columns:
            head = self._head(self._trace.categories[category], name, track)
            yield f'{{"ph":"i","s":"t",{head},"ts":{microseconds(ts - self._base_ns)}{args}}}'

    def _memory(self) -> Iterator[str]:
        memory = self._trace.memory
        for row, ts in enumerate(memory.ts_ns.tolist()):
            args = {
                "Device Id": int(memory.device_index[row]),
                "Device Type": int(memory.device_type[row]),
                "Addr": int(memory.address[row]),
                "Bytes": int(memory.size_bytes[row]),
            }
            if memory.has_total[row]:
                args["Total Allocated"] = int(memory.total_allocated_bytes[row])
                args["Total Reserved"] = int(memory.total_reserved_bytes[row])
            yield (
                '{"ph":"i","s":"t","cat":"cpu_instant_event","name":"[memory]",'
                f"{self._places[int(memory.track[row])]},"
                f'"ts":{microseconds(ts - self._base_ns)},"args":{json.dumps(args)}}}'
            )

    def _counters(self) -> Iterator[str]:
        samples, series = self._trace.counters, self._trace.counter_series
        columns = zip(
            samples.series.tolist(), samples.ts_ns.tolist(), samples.value.tolist(), strict=True
        )
        for number, ts, value in columns:
            if math.isfinite(value):
                one = series[number]
                yield (
                    f'{{"ph":"C","name":{json.dumps(one.name)},{self._places[one.track]},'
                    f'"ts":{microseconds(ts - self._base_ns)},'
                    f'"args":{{{json.dumps(one.key)}:{value!r}}}}}'
                )

    def _unfinished(self) -> Iterator[str]:
        unfinished = self._trace.unfinished
        columns = zip(
            unfinished.start_ns.tolist(),
            unfinished.track.tolist(),
            unfinished.name.tolist(),
            unfinished.category.tolist(),
            strict=True,
        )
        for i, (start, track, name, category) in enumerate(columns, len(self._trace.slices)):
            is_async = self._trace.tracks[track].kind is TrackKind.ASYNC
            phase = f'"ph":"b","id":{i}' if is_async else '"ph":"X"'
            head = self._head(self._trace.categories[category], name, track)
            yield f'{{{phase},{head},"ts":{microseconds(start - self._base_ns)}}}'


_COMMON_DEVICES = (DeviceKind.CUDA, DeviceKind.HIP, DeviceKind.OTHER, DeviceKind.PRIVATEUSE1)


class _ArgsSpool:
    """The args of all events as checked JSON text, read from the source in one forward pass.

    Slices come out by track and a compressed source can only be read forwards: so the texts
    are first copied, in the order of the source, to a scratch file.
    """

    def __init__(self, trace: Trace, scratch: Path) -> None:
        self._trace = trace
        self._path = scratch
        self._ends = np.empty(0, np.int64)
        self._begins = np.empty(0, np.int64)
        self._attributes = _AttributeArgs(trace)
        self._map: mmap.mmap | None = None
        self.num_left_out = 0

    def __enter__(self) -> _ArgsSpool:
        slices = self._trace.slices
        self._begins = np.zeros(len(slices), np.int64)
        self._ends = np.zeros(len(slices), np.int64)
        with_args = np.flatnonzero(slices.args_length)
        order = with_args[np.argsort(slices.args_offset[with_args], kind="stable")]
        with self._path.open("wb") as file:
            for slice_id in order.tolist():
                self._begins[slice_id] = file.tell()
                file.write(self._checked(slice_id))
                self._ends[slice_id] = file.tell()
            size = file.tell()
        if size:
            with self._path.open("rb") as file:
                self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        return self

    def __exit__(self, *exception: object) -> None:
        if self._map is not None:
            self._map.close()
        self._path.unlink(missing_ok=True)

    def _checked(self, slice_id: int) -> bytes:
        """A slice's args, unchanged where they are sound JSON, else repaired."""
        raw = self._trace.args_text(slice_id)
        if _is_json(raw):
            return raw
        try:
            return json.dumps(_finite(self._trace.args(slice_id))).encode()
        except TraceFormatError:
            self.num_left_out += 1
            return b""

    def of_slices(self, first: int, end: int) -> Iterable[str]:
        """For each slice: ``,"args":{...}``, or nothing."""
        own = self._attributes.between(first, end)
        for at in range(first, end):
            begin, stop = int(self._begins[at]), int(self._ends[at])
            if stop > begin and self._map is not None:
                yield f',"args":{self._map[begin:stop].decode("utf-8")}'
            elif at in own and self._trace.slices.args_length[at] == 0:
                yield f',"args":{{{",".join(own[at])}}}'
            else:
                yield _NO_ARGS

    def of_instants(self) -> Iterable[str]:
        """As :meth:`of_slices`, for the instants."""
        instants = self._trace.instants
        pairs = zip(instants.args_offset.tolist(), instants.args_length.tolist(), strict=True)
        for offset, length in pairs:
            yield self._instant_args(offset, length)

    def _instant_args(self, offset: int, length: int) -> str:
        if length == 0:
            return _NO_ARGS
        try:
            return f',"args":{json.dumps(_finite(self._trace.args_at(offset, length)))}'
        except TraceFormatError:
            self.num_left_out += 1
            return _NO_ARGS


class _AttributeArgs:
    """Members of args made from attributes, for slices whose format has no args."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        is_needed = bool((trace.slices.args_length == 0).any())
        found = {key: trace.attribute(key) for key in ATTRIBUTES} if is_needed else {}
        self._json_of_text: dict[int, str] = {}
        self._attributes = {key: each for key, each in found.items() if each is not None}

    def between(self, first: int, end: int) -> dict[int, list[str]]:
        """Members of each slice in ``[first, end)`` that has attributes."""
        members: dict[int, list[str]] = {}
        for key, attribute in self._attributes.items():
            low, high = np.searchsorted(attribute.slices, (first, end))
            word = json.dumps(ARG_NAMES[key])
            values = attribute.values[low:high].tolist()
            for slice_id, value in zip(attribute.slices[low:high].tolist(), values, strict=True):
                text = self._text(value) if attribute.is_text else str(value)
                members.setdefault(slice_id, []).append(f"{word}:{text}")
        return members

    def _text(self, string_id: int) -> str:
        """A text attribute is a JSON value's text, or a string's own."""
        known = self._json_of_text.get(string_id)
        if known is None:
            text = self._trace.strings[string_id]
            known = text if text[:1] in ("[", "{") and _is_json(text) else json.dumps(text)
            self._json_of_text[string_id] = known
        return known


def innermost_times(start_ns: I64, end_ns: I64, parent: U32, slice_ids: U32) -> I64:
    """For each slice a time at which no other slice lies deeper: where a flow finds it.

    That is its start, unless a child starts there as well: then the end of the children that
    follow without a gap. A slice that is covered from end to end by children has no such time:
    it gets its start.
    """
    times: I64 = start_ns[slice_ids].copy()
    asked = np.zeros(start_ns.size, np.bool_)
    asked[slice_ids] = True
    children = np.flatnonzero(
        asked[parent] & (parent != np.arange(parent.size, dtype=parent.dtype))
    )
    crowded = np.unique(parent[children[start_ns[children] == start_ns[parent[children]]]])
    if crowded.size == 0:
        return times
    children = children[np.isin(parent[children], crowded)]
    children = children[np.lexsort((end_ns[children], start_ns[children], parent[children]))]
    firsts = np.searchsorted(parent[children], crowded)
    lasts = np.searchsorted(parent[children], crowded, side="right")
    gap = {
        int(owner): _first_gap(start_ns, end_ns, int(owner), children[low:high])
        for owner, low, high in zip(crowded, firsts, lasts, strict=True)
    }
    for row, slice_id in enumerate(slice_ids.tolist()):
        times[row] = gap.get(slice_id, times[row])
    return times


def _first_gap(start_ns: I64, end_ns: I64, owner: int, children: npt.NDArray[Any]) -> int:
    at = int(start_ns[owner])
    for child in children.tolist():
        if start_ns[child] > at:
            break
        # A slice of no length holds its own start.
        at = max(at, int(end_ns[child]), int(start_ns[child]) + 1)
    return at if at < end_ns[owner] else int(start_ns[owner])


def _cat(category: str) -> str:
    return f'"cat":{json.dumps(category)},' if category else ""


def _place(track: Track) -> str:
    return f'"pid":{_id_text(track.process)},"tid":{_id_text(track.thread)}'


def _id_text(text: str) -> str:
    """A number where the text is one in its plain form, else a string."""
    number = text.isascii() and text.removeprefix("-").isdecimal() and str(int(text)) == text
    return text if number else json.dumps(text)


def _metadata_event(name: str, place: str, key: str, value: str | int) -> str:
    return f'{{"ph":"M","name":"{name}",{place},"args":{{"{key}":{json.dumps(value)}}}}}'


def _is_json(text: str | bytes) -> bool:
    """Whether strict parsers take it too: no NaN, no raw control characters, valid UTF-8."""
    try:
        decoded = text if isinstance(text, str) else text.decode("utf-8")
        _STRICT.decode(decoded)
    except (ValueError, RecursionError):
        return False
    return True


def _refuse(constant: str) -> None:
    raise ValueError(constant)


_STRICT = json.JSONDecoder(parse_constant=_refuse)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _chunked(events: Iterator[str]) -> Iterator[list[str]]:
    chunk: list[str] = []
    for event in events:
        chunk.append(event)
        if len(chunk) >= _ROWS_PER_CHUNK:
            yield chunk
            chunk = []
    if chunk:
        yield chunk
