"""Types of the compiled module (native/)."""

from typing import Any

import numpy as np
import numpy.typing as npt

_I64 = npt.NDArray[np.int64]
_U64 = npt.NDArray[np.uint64]
_F64 = npt.NDArray[np.float64]
_U32 = npt.NDArray[np.uint32]
_U16 = npt.NDArray[np.uint16]
_U8 = npt.NDArray[np.uint8]

PYRAMID_BASE_SHIFT: int
PYRAMID_LEVEL_SHIFT: int
PYRAMID_LEVELS: int

class Segment:
    num_events: int
    ph: _U8
    flags: _U8
    category: _U32
    name: _U32
    track: _U32
    ts_ns: _I64
    dur_ns: _I64
    id: _U64
    args_offset: _U64
    args_length: _U32
    def attribute(self, k: int) -> tuple[Any, ...]: ...
    def counters(self) -> tuple[_U32, _U32, _F64]: ...

class Scanner:
    def __init__(
        self,
        arg_keys: list[tuple[str, str]],
        threads: int = 1,
        segment_events: int = 1_000_000,
        window_bytes: int = ...,
        max_event_bytes: int = ...,
    ) -> None: ...
    def open(self, path: str) -> None: ...
    def feed(self, buffer: Any) -> None: ...
    def close_input(self) -> None: ...
    def stop(self) -> None: ...
    def next_segment(self) -> Segment | None: ...
    def string(self, id: int) -> str: ...
    def string_table(self) -> tuple[_I64, _U8]: ...
    def tracks(self) -> list[tuple[str, str]]: ...
    def metadata(self) -> list[tuple[str, bytes]]: ...
    def damage(self) -> list[tuple[str, int, int]]: ...
    def document_kind(self) -> str: ...
    def num_documents(self) -> int: ...
    def saw_trace_events(self) -> bool: ...
    def ended_cleanly(self) -> bool: ...
    def bytes_scanned(self) -> int: ...

class PlacedRows:
    track: _U32
    kind: _U8
    category: _U16
    name: _U32
    start_ns: _I64
    dur_ns: _I64
    args_offset: _U64
    args_length: _U32
    place: _U32
    rest: _I64
    new_categories: _U32
    new_seen: _U32
    new_names: _U32
    new_tracks: _U32

def place_rows(
    phase: _U8,
    flags: _U8,
    category: _U32,
    name: _U32,
    track: _U32,
    ts_ns: _I64,
    dur_ns: _I64,
    args_offset: _U64,
    args_length: _U32,
    number: _U16,
    placing: _U8,
    kind: _U8,
    seen_kind: _U8,
    name_kind: _U8,
    host_track: _U32,
    start_limit_ns: int,
    dur_limit_ns: int,
    /,
) -> PlacedRows: ...
def keep_freed_memory() -> None: ...
def release_freed_memory() -> None: ...
def lift(
    place: _U32, rows: _U32, values: npt.NDArray[Any], first_event: int
) -> tuple[_U32, npt.NDArray[Any]]: ...

class TrackIndexer:
    def __init__(
        self,
        start_ns: _I64,
        dur_ns: _I64,
        kind: _U8,
        category: _U16,
        name: _U32,
        args_offset: _U64,
        args_length: _U32,
        fd: int,
        offsets: list[int],
        slice_of_event: _U32,
        python_kind: int,
        op_kind: int,
        release_mapped: bool = False,
    ) -> None: ...
    @property
    def num_too_deep(self) -> int: ...
    def index(
        self,
        track: int,
        events: _U32,
        first: int,
        queries: list[tuple[_I64, _U32, bool, _U8, _U32]],
    ) -> _I64: ...

def group_order(keys: _U32, num_groups: int) -> tuple[_U32, _I64]: ...
def group_sum(keys: _U32, values: _I64, num_groups: int) -> tuple[_I64, _I64]: ...
def group_range(keys: _U32, values: _I64, num_groups: int) -> tuple[_I64, _I64]: ...
def point_order(track: _U32, ts_ns: _I64, num_tracks: int) -> tuple[_U32, _I64]: ...
def rows_by_slice(
    events: _U32, values: npt.NDArray[Any], slice_of_event: _U32
) -> tuple[_U32, npt.NDArray[Any]]: ...
def pair_flows(
    flow_id: _U64, kind: _U32, phase: _U8, ts_ns: _I64, found: _U8, slices: _U32
) -> tuple[_U32, _U32, _U32]: ...
def find_launches(
    kind: _U8,
    parent: _U32,
    correlation: tuple[_U32, _U64],
    external_id: tuple[_U32, _U64],
    flows: tuple[_U32, _U32],
    device_kinds: list[int],
    call_kind: int,
    op_kind: int,
) -> tuple[_U32, _U8, _U32, _U8, _U32]: ...
def nest_calls(start_ns: _I64, dur_ns: _I64) -> tuple[_U32, _I64]: ...
def kinds_present(kind: _U8) -> _U8: ...
def survey_calls(
    name: _U32,
    kind: _U8,
    parent: _U32,
    depth: _U16,
    dur_ns: _I64,
    self_ns: _I64,
    first_key: _U32,
    num_call_keys: int,
    num_keys: int,
) -> tuple[_U32, _I64, _I64, _I64, _U32, _U32, _U32, _U32]: ...
def differing_self_times(
    parent: _U32, start_ns: _I64, dur_ns: _I64, self_ns: _I64, first: int
) -> tuple[_U32, _I64]: ...
def outer_calls(key: _U32, above: _U32, num_call_keys: int) -> _U32: ...
def charge_upwards(
    above: _U32, key: _U32, skip: _U8, calls: _U32, work_ns: _I64, num_groups: int
) -> _I64: ...
def find_keys(keys: _U32, wanted: _U8) -> _U32: ...
def names_present(name: _U32, kind: _U8, wanted_kind: _U8, num_names: int) -> _U8: ...
def texts_with(ends: _I64, bytes: _U8, wanted: _U8, words: list[str]) -> _U8: ...
def find_names(name: _U32, kind: _U8, wanted_kind: _U8, wanted_name: _U8) -> _U32: ...
def climb(parent: _U32, wanted: _U8, ids: _U32) -> tuple[_U8, _U32]: ...
def build_pyramid(
    first: _I64, count: _I64, start: _I64, dur: _I64, release_mapped: bool = False
) -> tuple[_U8, _U32, _I64, _I64, _U32, _I64, _U32]: ...
