"""Columns that an importer hands to the writer, in any number of batches and in any order."""

from __future__ import annotations

from dataclasses import dataclass

from trnscope.store.tables import F64, I64, U8, U16, U32, U64

FLOW_START, FLOW_STEP, FLOW_END = 0, 1, 2


@dataclass(frozen=True)
class SliceBatch:
    """Slices with a known start (ns) and duration (ns, >= 0); one row each."""

    track: U32
    kind: U8
    category: U16
    name: U32
    start_ns: I64
    dur_ns: I64
    args_offset: U64
    args_length: U32


@dataclass(frozen=True)
class FlowEnds:
    """Ends of flows; ``phase`` is FLOW_START, FLOW_STEP or FLOW_END, ``kind`` a string id.

    Ends of one (kind, flow id) belong together: each step or end is linked from the latest
    start or step at or before it, else from the first start.
    """

    flow_id: U64
    kind: U32
    phase: U8
    track: U32
    ts_ns: I64


@dataclass(frozen=True)
class InstantBatch:
    """Points in time."""

    ts_ns: I64
    track: U32
    name: U32
    category: U16
    args_offset: U64
    args_length: U32


@dataclass(frozen=True)
class CounterBatch:
    """Samples; ``series`` comes from ``TraceWriter.counter_series``."""

    series: U32
    ts_ns: I64
    value: F64


@dataclass(frozen=True)
class MemoryBatch:
    """Allocator events; ``has_total`` (0/1) says whether both totals are given."""

    ts_ns: I64
    track: U32
    address: U64
    size_bytes: I64
    device_type: I64
    device_index: I64
    has_total: U8
    total_allocated_bytes: I64
    total_reserved_bytes: I64


@dataclass(frozen=True)
class UnfinishedBatch:
    """Slices of unknown duration."""

    start_ns: I64
    track: U32
    name: U32
    category: U16
