"""Places the tables of a Neuron device profile: instructions by engine, DMA by queue, executions.

Alone, an instruction is a kernel of its engine and a DMA transfer a copy of its queue, so that
busy and idle time, overlap and the table of kernels tell of the engines. Beside a system profile
the execution is the device's work already, and both are the parts inside it (``INSTRUCTION``).
An instruction that only waits for a semaphore is no work: Neuron Explorer counts an engine
as active without these waits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from trnscope.ingest.durations import DurationBudget
from trnscope.ingest.neuron_places import NeuronTracks
from trnscope.ingest.neuron_rows import ABSENT, Rows, is_time
from trnscope.ingest.neuron_system import PlacedExecution
from trnscope.ingest.neuron_texts import Texts
from trnscope.ingest.neuron_words import engine_of, is_wait, item_bytes
from trnscope.model.kinds import SliceKind
from trnscope.model.track import Device
from trnscope.store.attributes import ATTRIBUTES, AttributeType
from trnscope.store.batches import (
    FLOW_END,
    FLOW_START,
    CounterBatch,
    FlowEnds,
    InstantBatch,
    SliceBatch,
    UnfinishedBatch,
)
from trnscope.store.tables import I64, U8, U32, Bool
from trnscope.store.writer import TraceWriter

TIMES = ("start_ts", "end_ts", "duration_ns")
INSTRUCTION_COLUMNS = (
    *TIMES, "id", "engine", "pcore_idx", "opcode", "layer", "hlo_name", "nki_source_location",
    "raw_flops",
)  # fmt: skip
DMA_COLUMNS = (
    *TIMES, "id", "pcore_idx", "queue_name", "queue_type", "queue_idx", "variable", "op",
    "transfer_bytes",
)  # fmt: skip
COLLECTIVE_COLUMNS = (
    *TIMES, "op_id", "operation", "stream_index", "num_elements", "dtype", "input_size",
    "output_size", "replica_group",
)  # fmt: skip
EXECUTION_COLUMNS = ("execution_index", "neff_name", "execution_start_ts", "execution_end_ts")
NODE_COLUMNS = ("start_ts", "end_ts", "node_name", "parent_name")
FLOW_COLUMNS = ("in_id", "out_id", "in_table", "out_table", "dependency_type")

_TABLE_WORDS = {
    "instruction": "instruction",
    "dma": "dma",
    "dma_block": "dma",
    "dmapacketaggregated": "dma",
    "dmapacket": "dma",
    "ccop": "collective",
    "cc_op": "collective",
    "systemprofileevents": "system",
    "system_profile_events": "system",
}


@dataclass(frozen=True)
class _Timed:
    """What is known of the times of some rows."""

    complete: Bool
    open_ended: Bool
    start_ns: I64
    dur_ns: I64


def _elements(rows: Rows, size: str) -> I64:
    """A size in bytes as elements of the row's type; absent where either is unknown."""
    codes, words = rows.texts("dtype")
    known = [item_bytes(word) or 0 for word in words]
    width = np.array([*known, 0], np.int64)[codes]
    sizes = rows.ints(size)
    has = (width > 0) & (sizes >= 0)
    return np.where(has, sizes // np.maximum(width, 1), ABSENT)


class DevicePlacer:
    """Places the tables of one logical core."""

    def __init__(
        self,
        writer: TraceWriter,
        texts: Texts,
        tracks: NeuronTracks,
        device: Device,
        durations: DurationBudget,
    ) -> None:
        self._writer = writer
        self._texts = texts
        self._tracks = tracks
        self._device = device
        self._durations = durations
        self._offset_ns = 0
        self._parts_of: Sequence[PlacedExecution] = ()
        self._points: dict[str, list[tuple[I64, U32, I64]]] = {}
        self._num_flows = 0
        self.num_unreadable = 0
        """Rows without a usable start."""
        self.num_unfinished = 0
        """Rows without an end."""
        self.num_impossible = 0
        """Rows that would last for years; kept apart like those without an end."""

    def lay_beside(self, executions: Sequence[PlacedExecution], offset_ns: int) -> None:
        """Count the rows as parts of executions that are placed already, on the host's clock."""
        self._parts_of = executions
        self._offset_ns = offset_ns

    # Events -------------------------------------------------------------------------------

    def add_instructions(self, rows: Rows) -> None:
        """Instructions, on the track of their engine."""
        opcodes, words = rows.texts("opcode")
        names = self._named(opcodes, words, "(no opcode)")
        waits = np.array([*(is_wait(word) for word in words), False], np.bool_)[opcodes]
        kinds = np.where(waits, SliceKind.SYNC, self._kind(SliceKind.KERNEL)).astype(np.uint8)
        tracks = self._engine_tracks(rows)
        event, timed = self._add(rows, tracks, kinds, names, "instruction")
        self._remember("instruction", rows.ints("id"), tracks, timed)
        self._correlate(event, timed)
        self._attribute("flops", event, timed, rows.ints("raw_flops"))
        for key, column in (
            ("layer", "layer"),
            ("hlo_name", "hlo_name"),
            ("source_location", "nki_source_location"),
        ):
            self._text_attribute(key, event, timed, rows, column)

    def add_transfers(self, rows: Rows) -> None:
        """DMA transfers, on the track of their queue; the name is what is moved."""
        variables, words = rows.texts("variable")
        names = self._named(variables, words, "DMA")
        kinds = np.full(rows.size, self._kind(SliceKind.MEMCPY), np.uint8)
        tracks = self._queue_tracks(rows)
        event, timed = self._add(rows, tracks, kinds, names, "dma")
        self._remember("dma", rows.ints("id"), tracks, timed)
        self._correlate(event, timed)
        self._attribute("bytes", event, timed, rows.ints("transfer_bytes"))
        self._text_attribute("memcpy_kind", event, timed, rows, "queue_type")

    def add_collectives(self, rows: Rows) -> None:
        """Collective operations of the device."""
        names = self._named(*rows.texts("operation"), "(collective)")
        kinds = np.full(rows.size, self._kind(SliceKind.COLLECTIVE), np.uint8)
        tracks = np.array(
            [
                self._tracks.stream(self._device, None if n == ABSENT else n, "collectives")
                for n in rows.ints("stream_index").tolist()
            ],
            np.uint32,
        )
        event, timed = self._add(rows, tracks, kinds, names, "collective")
        self._remember("collective", rows.ints("op_id"), tracks, timed)
        self._correlate(event, timed)
        size = np.maximum(rows.ints("input_size"), rows.ints("output_size"))
        self._attribute("bytes", event, timed, size)
        # What this rank gives and gets; the column of elements is of the whole buffer.
        self._attribute("in_nelems", event, timed, _elements(rows, "input_size"))
        self._attribute("out_nelems", event, timed, _elements(rows, "output_size"))
        for key, column in (
            ("collective_name", "operation"),
            ("dtype", "dtype"),
            ("process_group_ranks", "replica_group"),
        ):
            self._text_attribute(key, event, timed, rows, column)

    def add_active_times(self, rows: Rows) -> None:
        """When engines were active: stands in for instructions that are not in the profile."""
        tracks = self._engine_tracks(rows)
        names = np.full(rows.size, self._texts.intern("(active)"), np.uint32)
        kinds = np.full(rows.size, self._kind(SliceKind.KERNEL), np.uint8)
        self._add(rows, tracks, kinds, names, "active_time")

    def add_executions(self, rows: Rows) -> None:
        """NEFF executions as ranges above what ran in them."""
        names = self._named(*rows.texts("neff_name"), "(execution without a NEFF)")
        self._add_ranges(rows, names, "executions", "execution", "execution_")

    def add_framework_nodes(self, rows: Rows) -> None:
        """The model's layers as ranges."""
        names = self._named(*rows.texts("node_name"), "(unnamed)")
        self._add_ranges(rows, names, "layers", "framework_node")

    def add_throttling(self, rows: Rows) -> None:
        """Stretches in which the hardware was throttled."""
        names = self._named(*rows.texts("type"), "throttled")
        self._add_ranges(rows, names, "throttling", "throttle")

    def add_errors(self, rows: Rows) -> int:
        """Errors that the hardware reported, as points in time; how many."""
        time = rows.ints("timestamp")
        has = self._is_placed(time)
        names = self._named(*rows.texts("description"), "hardware error")[has]
        count = int(has.sum())
        track = self._tracks.stream(self._device, None, "events")
        self._writer.add_instants(
            InstantBatch(
                ts_ns=time[has] + self._offset_ns,
                track=np.full(count, track, np.uint32),
                name=names,
                category=np.full(count, self._writer.category("neuron_error"), np.uint16),
                args_offset=np.zeros(count, np.uint64),
                args_length=np.zeros(count, np.uint32),
            )
        )
        return count

    def add_counters(self, rows: Rows, name: str, keys: Sequence[str]) -> None:
        """Samples of a usage table; each value column is a series, one a physical core."""
        time, core = rows.ints("timestamp"), rows.ints("pcore_idx")
        track = self._tracks.counter(self._device)
        placed = self._is_placed(time)
        for key in keys:
            value = rows.floats(key)
            for one in np.unique(core).tolist():
                has = (core == one) & placed & np.isfinite(value)
                label = name if one == ABSENT else f"{name} (core {one})"
                series = self._writer.counter_series(track, label, key)
                count = int(has.sum())
                self._writer.add_counter_samples(
                    CounterBatch(
                        np.full(count, series, np.uint32), time[has] + self._offset_ns, value[has]
                    )
                )

    # Dependencies -------------------------------------------------------------------------

    def add_flows(self, rows: Rows, system: dict[int, tuple[int, int]]) -> int:
        """Dependencies between rows that were placed; how many lead nowhere.

        ``system`` gives track and start of the system profile's events by their id.
        """
        sides = [self._ends(rows, side, system) for side in ("in", "out")]
        has = sides[0][0] & sides[1][0]
        count = int(has.sum())
        first = (self._device.index << 40) + self._num_flows
        self._num_flows += count
        flow_id = np.arange(first, first + count, dtype=np.uint64)
        kind = self._named(*rows.texts("dependency_type"), "dependency")[has]
        for phase, (_, track, time) in zip((FLOW_START, FLOW_END), sides, strict=True):
            self._writer.add_flow_ends(
                FlowEnds(flow_id, kind, np.full(count, phase, np.uint8), track[has], time[has])
            )
        return rows.size - count

    def _ends(
        self, rows: Rows, side: str, system: dict[int, tuple[int, int]]
    ) -> tuple[Bool, U32, I64]:
        ids = rows.ints(f"{side}_id")
        codes, words = rows.texts(f"{side}_table")
        has = np.zeros(rows.size, np.bool_)
        track, time = np.zeros(rows.size, np.uint32), np.zeros(rows.size, np.int64)
        for code, word in enumerate(words):
            mine = np.flatnonzero(codes == code)
            table = _TABLE_WORDS.get(word.replace(" ", "").lower(), word)
            points = self._points_of(table, system)
            if points is None or mine.size == 0:
                continue
            known, tracks, starts = points
            at = np.minimum(np.searchsorted(known, ids[mine]), known.size - 1)
            found = known[at] == ids[mine]
            has[mine], track[mine], time[mine] = found, tracks[at], starts[at]
        return has, track, time

    def _points_of(
        self, table: str, system: dict[int, tuple[int, int]]
    ) -> tuple[I64, U32, I64] | None:
        """Ids, rising, with the track and the start of each; null for a table without rows."""
        if table == "system":
            if not system:
                return None
            ids = np.array(sorted(system), np.int64)
            places = [system[number] for number in ids.tolist()]
            return (
                ids,
                np.array([track for track, _ in places], np.uint32),
                np.array([start for _, start in places], np.int64),
            )
        parts = self._points.get(table)
        if not parts:
            return None
        if len(parts) > 1 or not np.all(parts[0][0][1:] >= parts[0][0][:-1]):
            ids, tracks, starts = (
                np.concatenate([part[side] for part in parts]) for side in range(3)
            )
            order = np.argsort(ids, kind="stable")
            parts[:] = [(ids[order], tracks[order], starts[order])]
        return parts[0]

    def _remember(self, table: str, ids: I64, tracks: U32, timed: _Timed) -> None:
        has = timed.complete & (ids != ABSENT)
        if has.any():
            point = (ids[has], tracks[has], timed.start_ns[has])
            self._points.setdefault(table, []).append(point)

    # Common -------------------------------------------------------------------------------

    def _kind(self, alone: SliceKind) -> SliceKind:
        return SliceKind.INSTRUCTION if self._parts_of else alone

    def _named(self, codes: npt.NDArray[np.intp], words: list[str], other: str) -> U32:
        """String ids of texts; ``other`` for rows without one."""
        ids = np.append(self._texts.ids(words), np.uint32(self._texts.intern(other)))
        return np.asarray(ids[codes], np.uint32)

    def _engine_tracks(self, rows: Rows) -> U32:
        codes, words = rows.texts("engine")
        engines = [engine_of(word) for word in words] + ["unknown"]
        return self._by_core(
            rows, codes, lambda code, core: self._tracks.engine(self._device, engines[code], core)
        )

    def _queue_tracks(self, rows: Rows) -> U32:
        codes, words = rows.texts("queue_name")
        if not words:
            codes, words = rows.texts("queue_type")
        queues = [*words, "DMA"]
        return self._by_core(
            rows, codes, lambda code, core: self._tracks.queue(self._device, queues[code], core)
        )

    @staticmethod
    def _by_core(
        rows: Rows, codes: npt.NDArray[np.intp], track: Callable[[int, int | None], int]
    ) -> U32:
        """A track for each pair of a text and a physical core."""
        core = rows.ints("pcore_idx")
        pairs, inverse = np.unique(np.stack((codes, core)), axis=1, return_inverse=True)
        tracks = [track(code, None if one == ABSENT else one) for code, one in pairs.T.tolist()]
        return np.array(tracks, np.uint32)[inverse.reshape(-1)]

    def _add_ranges(
        self, rows: Rows, names: U32, track: str, category: str, prefix: str = ""
    ) -> None:
        at = self._tracks.stream(self._device, None, track)
        kinds = np.full(rows.size, SliceKind.DEVICE_ANNOTATION, np.uint8)
        tracks = np.full(rows.size, at, np.uint32)
        self._add(rows, tracks, kinds, names, category, prefix)

    def _add(
        self, rows: Rows, tracks: U32, kinds: U8, names: U32, category: str, prefix: str = ""
    ) -> tuple[int, _Timed]:
        """Write rows as slices; returns the event index of the first one."""
        timed = self._timed(rows, prefix)
        number = self._writer.category(category)
        cut, kept = timed.open_ended, timed.complete
        if cut.any():
            size = int(cut.sum())
            self._writer.add_unfinished(
                UnfinishedBatch(
                    timed.start_ns[cut],
                    tracks[cut],
                    names[cut],
                    np.full(size, number, np.uint16),
                )
            )
        size = int(kept.sum())
        event = self._writer.add_slices(
            SliceBatch(
                track=tracks[kept],
                kind=kinds[kept],
                category=np.full(size, number, np.uint16),
                name=names[kept],
                start_ns=timed.start_ns[kept],
                dur_ns=timed.dur_ns[kept],
                args_offset=np.zeros(size, np.uint64),
                args_length=np.zeros(size, np.uint32),
            )
        )
        return event, timed

    def _timed(self, rows: Rows, prefix: str) -> _Timed:
        start, end = rows.ints(f"{prefix}start_ts"), rows.ints(f"{prefix}end_ts")
        duration = rows.ints("duration_ns")
        if not (start != ABSENT).any():  # tables of points with a duration
            start, duration = rows.ints("timestamp"), rows.ints("duration")
        readable = (start >= 0) & self._is_placed(start)
        by_end = readable & (end != ABSENT) & (end >= start)
        by_duration = readable & ~by_end & (duration != ABSENT) & (duration >= 0)
        complete = by_end | by_duration
        self.num_unreadable += int((~readable).sum())
        self.num_unfinished += int((readable & ~complete).sum())
        length = np.where(by_end, end - start, np.where(by_duration, duration, 0))
        admitted = self._durations.admits(length)
        self.num_impossible += int((~admitted).sum())
        complete &= admitted
        length[~admitted] = 0
        return _Timed(complete, readable & ~complete, start + self._offset_ns, length)

    def _is_placed(self, time: I64) -> Bool:
        """Which times are usable, also on the clock that the rows are laid on."""
        usable = is_time(time)
        return usable & is_time(np.where(usable, time, 0) + self._offset_ns)

    def _correlate(self, event: int, timed: _Timed) -> None:
        """Give each part the number of the execution that it starts in."""
        if not self._parts_of:
            return
        starts = np.array([one.start_ns for one in self._parts_of], np.int64)
        ends = np.array([one.end_ns for one in self._parts_of], np.int64)
        numbers = np.array([one.correlation for one in self._parts_of], np.int64)
        at = np.maximum(np.searchsorted(starts, timed.start_ns, side="right") - 1, 0)
        inside = (timed.start_ns >= starts[at]) & (timed.start_ns <= ends[at])
        self._attribute("correlation", event, timed, np.where(inside, numbers[at], ABSENT))

    def _text_attribute(self, key: str, event: int, timed: _Timed, rows: Rows, column: str) -> None:
        codes, words = rows.texts(column)
        if words:
            ids = np.append(self._texts.ids(words).astype(np.int64), ABSENT)
            self._attribute(key, event, timed, ids[codes])

    def _attribute(self, key: str, event: int, timed: _Timed, values: I64) -> None:
        kept = values[timed.complete]
        has = kept != ABSENT
        if ATTRIBUTES[key] is AttributeType.UNSIGNED:
            has &= kept >= 0
        if has.any():
            events = (event + np.flatnonzero(has)).astype(np.uint32)
            self._writer.add_attribute(key, events, kept[has].astype(ATTRIBUTES[key].dtype))
