"""A trace's columns as Arrow tables for SQL, sharing the mapped memory wherever they can."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from trnscope.model.kinds import SliceKind, TrackKind
from trnscope.store.reader import Trace
from trnscope.store.tables import U32, Attribute, Bool

_KIND_NAMES = [kind.name.lower() for kind in SliceKind]

OP_ATTRIBUTES = (
    "external_id",
    "sequence_number",
    "forward_thread",
    "flops",
    "input_dims",
    "input_types",
    "input_strides",
    "concrete_inputs",
    "module_hierarchy",
    "call_stack",
)
"""Attributes that are columns of ``ops``."""

DEVICE_ATTRIBUTES = (
    "correlation",
    "bytes",
    "memcpy_kind",
    "grid",
    "block",
    "graph_id",
    "graph_node_id",
    "collective_name",
    "collective_seq",
    "comms_id",
    "dtype",
    "in_nelems",
    "out_nelems",
    "group_size",
    "process_group_name",
    "process_group_ranks",
)
"""Attributes that are columns of ``device_work`` and ``kernels``."""


INSTRUCTION_ATTRIBUTES = (
    "correlation",
    "bytes",
    "flops",
    "layer",
    "hlo_name",
    "source_location",
)
"""Attributes that are columns of ``instructions``."""

_PART_TRACKS = {TrackKind.DEVICE_ENGINE: "engine", TrackKind.DEVICE_QUEUE: "queue"}


class TraceTables:
    """Makes the tables of one trace, each when it is asked for."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._texts: Any = None
        self._makers: dict[str, Callable[[], Any]] = {
            "tracks": self._tracks,
            "slices": self._slices,
            "ops": self._ops,
            "device_work": self._device_work,
            "instructions": self._instructions,
            "flows": self._flows,
            "counters": self._counters,
            "instants": self._instants,
            "memory": self._memory,
            "unfinished": self._unfinished,
            "strings": self._strings,
        }

    def table(self, name: str) -> Any:
        """One ``pyarrow.Table``; the names are those of the views over them."""
        return self._makers[name]()

    # Texts --------------------------------------------------------------------------------

    def _dictionary(self) -> Any:
        if self._texts is None:
            self._texts = _string_array(self._trace)
        return self._texts

    def _text(self, ids: npt.NDArray[Any], has: Bool | None = None) -> Any:
        """A text column from string ids; null where ``has`` is false."""
        mask = None if has is None else ~has
        return pa.DictionaryArray.from_arrays(
            pa.array(ids, pa.uint32(), mask=mask), self._dictionary(), safe=False
        )

    def _category(self, ids: npt.NDArray[Any]) -> Any:
        return _labels(ids, self._trace.categories)

    # Tables -------------------------------------------------------------------------------

    def _tracks(self) -> Any:
        tracks = self._trace.tracks
        devices = [track.device for track in tracks]
        return pa.table(
            {
                "track": pa.array(range(len(tracks)), pa.int64()),
                "kind": pa.array([track.kind.name.lower() for track in tracks], pa.string()),
                "process": _texts(track.process for track in tracks),
                "thread": _texts(track.thread for track in tracks),
                "process_name": _texts(track.process_name for track in tracks),
                "thread_name": _texts(track.thread_name for track in tracks),
                "device": _texts(device and device.label for device in devices),
                "device_name": _texts(device and device.name for device in devices),
                "simulated": pa.array([d and d.simulated for d in devices], pa.bool_()),
                "stream": pa.array([track.stream for track in tracks], pa.int64()),
            }
        )

    def _slices(self) -> Any:
        slices = self._trace.slices
        ids = np.arange(len(slices), dtype=np.uint32)
        return pa.table(
            {
                "id": pa.array(ids),
                "start_ns": pa.array(slices.start_ns),
                "dur_ns": pa.array(slices.dur_ns),
                "self_ns": pa.array(slices.self_ns),
                "op_self_ns": pa.array(slices.op_self_ns),
                "kind": _labels(slices.kind, _KIND_NAMES),
                "category": self._category(slices.category),
                "name": self._text(slices.name),
                "name_id": pa.array(slices.name),
                "track": pa.array(slices.track),
                "depth": pa.array(slices.depth),
                "parent": pa.array(slices.parent),
            }
        )

    def _some_slices(self, ids: U32) -> dict[str, Any]:
        slices = self._trace.slices
        return {
            "id": pa.array(ids),
            "start_ns": pa.array(slices.start_ns[ids]),
            "dur_ns": pa.array(slices.dur_ns[ids]),
            "name": self._text(slices.name[ids]),
            "track": pa.array(slices.track[ids]),
        }

    def _ops(self) -> Any:
        slices = self._trace.slices
        ids = slices.of_kind(SliceKind.CPU_OP)
        parent = slices.parent[ids]
        columns = self._some_slices(ids) | {
            "self_ns": pa.array(slices.self_ns[ids]),
            "op_self_ns": pa.array(slices.op_self_ns[ids]),
            "parent": pa.array(parent, mask=parent == ids),
        }
        return pa.table(columns | self._attribute_columns(OP_ATTRIBUTES, ids))

    def _device_work(self) -> Any:
        slices, launches = self._trace.slices, self._trace.launches
        ids = launches.device_slice
        host = launches.launch_slice
        columns = self._some_slices(ids) | {
            "kind": _labels(slices.kind[ids], _KIND_NAMES),
            **self._device_columns(slices.track[ids]),
            "launch": pa.array(host, mask=~launches.has_launch),
            "launch_start_ns": pa.array(_at(slices.start_ns, host), mask=~launches.has_launch),
            "launch_dur_ns": pa.array(_at(slices.dur_ns, host), mask=~launches.has_launch),
            "launch_name": self._text(_at(slices.name, host), launches.has_launch),
            "op": pa.array(launches.op_slice, mask=~launches.has_op),
            "op_name": self._text(_at(slices.name, launches.op_slice), launches.has_op),
        }
        return pa.table(columns | self._attribute_columns(DEVICE_ATTRIBUTES, ids))

    def _instructions(self) -> Any:
        slices, tracks = self._trace.slices, self._trace.tracks
        units = [_PART_TRACKS.get(track.kind, "") for track in tracks]
        is_part = np.array([unit != "" for unit in units], np.bool_)
        ids = np.flatnonzero(_at(is_part, slices.track)).astype(np.uint32)
        track = slices.track[ids]
        has, row = self._executions_of(ids)
        launches = self._trace.launches
        has_op = has & _at(launches.has_op, row)
        op = _at(launches.op_slice, row)
        columns = self._some_slices(ids) | {
            "unit": _labels(track, units),
            "place": _labels(track, [each.thread_name or each.thread for each in tracks]),
            "device": self._device_columns(track)["device"],
            "execution": pa.array(_at(launches.device_slice, row), mask=~has),
            "op": pa.array(op, mask=~has_op),
            "op_name": self._text(_at(slices.name, op), has_op),
        }
        return pa.table(columns | self._attribute_columns(INSTRUCTION_ATTRIBUTES, ids))

    def _executions_of(self, ids: U32) -> tuple[Bool, npt.NDArray[np.intp]]:
        """The row of ``launches`` whose work has the same correlation id, if it is another."""
        attribute, launches = self._trace.attribute("correlation"), self._trace.launches
        none = np.zeros(ids.size, np.bool_), np.zeros(ids.size, np.intp)
        if attribute is None or launches.device_slice.size == 0:
            return none
        known, values = attribute.of(launches.device_slice)
        rows = np.flatnonzero(known)
        if rows.size == 0:
            return none
        # A collective inside an execution shares its id: the kernel comes first.
        kind = self._trace.slices.kind[launches.device_slice[rows]]
        order = rows[np.lexsort((kind, values[rows]))]
        has, wanted = attribute.of(ids)
        at = np.minimum(np.searchsorted(values[order], wanted), order.size - 1)
        row = order[at]
        return has & (values[row] == wanted) & (launches.device_slice[row] != ids), row

    def _device_columns(self, track: U32) -> dict[str, Any]:
        tracks = self._trace.tracks
        devices = [each.device for each in tracks]
        no_device = np.array([device is None for device in devices], np.bool_)
        streams = np.array([each.stream or 0 for each in tracks], np.int64)
        no_stream = np.array([each.stream is None for each in tracks], np.bool_)
        labels = pa.array(["" if device is None else device.label for device in devices])
        device = pa.array(track, mask=_at(no_device, track))
        return {
            "device": pa.DictionaryArray.from_arrays(device, labels, safe=False),
            "stream": pa.array(_at(streams, track), mask=_at(no_stream, track)),
        }

    def has_attribute(self, key: str) -> bool:
        """Whether any slice has this attribute."""
        return self._trace.attribute(key) is not None

    def attribute(self, key: str) -> Any:
        """One attribute, which some slice has: a row for each slice that has it."""
        attribute = self._found(key)
        values = self._text(attribute.values) if attribute.is_text else pa.array(attribute.values)
        return pa.table({"slice": pa.array(attribute.slices), "value": values})

    def _attribute_columns(self, keys: tuple[str, ...], ids: U32) -> dict[str, Any]:
        return {key: self._attribute_column(key, ids) for key in keys if self.has_attribute(key)}

    def _attribute_column(self, key: str, ids: U32) -> Any:
        attribute = self._found(key)
        has, values = attribute.of(ids)
        return self._text(values, has) if attribute.is_text else pa.array(values, mask=~has)

    def _found(self, key: str) -> Attribute:
        attribute = self._trace.attribute(key)
        if attribute is None:
            raise KeyError(key)
        return attribute

    def _flows(self) -> Any:
        flows = self._trace.flows
        return pa.table(
            {
                "kind": self._text(flows.kind),
                "slice_out": pa.array(flows.slice_out),
                "slice_in": pa.array(flows.slice_in),
            }
        )

    def _counters(self) -> Any:
        samples, series = self._trace.counters, self._trace.counter_series
        tracks = np.array([each.track for each in series], np.uint32)
        return pa.table(
            {
                "track": pa.array(_at(tracks, samples.series)),
                "name": _labels(samples.series, [each.name for each in series]),
                "key": _labels(samples.series, [each.key for each in series]),
                "ts_ns": pa.array(samples.ts_ns),
                "value": pa.array(samples.value),
            }
        )

    def _instants(self) -> Any:
        instants = self._trace.instants
        return pa.table(
            {
                "ts_ns": pa.array(instants.ts_ns),
                "track": pa.array(instants.track),
                "name": self._text(instants.name),
                "category": self._category(instants.category),
            }
        )

    def _memory(self) -> Any:
        memory = self._trace.memory
        no_total = ~memory.has_total
        return pa.table(
            {
                "ts_ns": pa.array(memory.ts_ns),
                "track": pa.array(memory.track),
                "address": pa.array(memory.address),
                "size_bytes": pa.array(memory.size_bytes),
                "device_type": pa.array(memory.device_type),
                "device_index": pa.array(memory.device_index),
                "total_allocated_bytes": pa.array(memory.total_allocated_bytes, mask=no_total),
                "total_reserved_bytes": pa.array(memory.total_reserved_bytes, mask=no_total),
                "op": pa.array(memory.op_slice, mask=~memory.has_op),
            }
        )

    def _unfinished(self) -> Any:
        unfinished = self._trace.unfinished
        return pa.table(
            {
                "start_ns": pa.array(unfinished.start_ns),
                "track": pa.array(unfinished.track),
                "name": self._text(unfinished.name),
                "category": self._category(unfinished.category),
            }
        )

    def _strings(self) -> Any:
        texts = self._dictionary()
        return pa.table({"id": pa.array(np.arange(len(texts), dtype=np.uint32)), "text": texts})


def _texts(values: Any) -> Any:
    return pa.array(list(values), pa.string())


def _labels(ids: npt.NDArray[Any], labels: Any) -> Any:
    """A text column whose values index a short list."""
    return pa.DictionaryArray.from_arrays(
        pa.array(ids), pa.array(list(labels), pa.string()), safe=False
    )


def _at(values: npt.NDArray[Any], rows: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """``values[rows]``, where rows may be meaningless (0) if there are no values."""
    return values[rows] if values.size else np.zeros(rows.shape, values.dtype)


def _string_array(trace: Trace) -> Any:
    """The string table, over the mapped bytes; lone surrogates become U+FFFD."""
    ends, data = trace.table("string_ends")["end"], trace.table("string_data")["byte"]
    surrogate = (data[:-1] == 0xED) & (data[1:] >= 0xA0)
    if surrogate.any():
        repaired = [text.encode("utf-16", "surrogatepass") for text in trace.strings]
        return pa.array([text.decode("utf-16", "replace") for text in repaired], pa.large_string())
    offsets = np.concatenate((np.zeros(1, np.int64), ends))
    return pa.LargeStringArray.from_buffers(ends.size, pa.py_buffer(offsets), pa.py_buffer(data))
