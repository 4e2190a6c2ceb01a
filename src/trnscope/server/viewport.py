"""What to draw of some lanes in a window: binary rows, at most about one a pixel and lane."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.ipc as ipc

from trnscope.analysis.time_axis import TimeAxis
from trnscope.errors import UsageError
from trnscope.server.tracks import lane_bases
from trnscope.store.profile import Profile
from trnscope.store.reader import Trace
from trnscope.store.zoom import ZoomIndex, ZoomRows

NAME_LENGTH = 160
"""Characters of a name that the picture can use; the details have all of it."""
MAX_LANES = 4_000
"""Lanes of one request: more than a screen has room for."""
MAX_PIXELS = 20_000


class Viewports:
    """Answers viewport queries over all traces of a profile; may be used from any thread."""

    def __init__(self, profile: Profile, axis: TimeAxis) -> None:
        self._traces = profile.traces
        self._zeros_ns = axis.zeros_ns
        self._bases = lane_bases(profile)

    @cached_property
    def _indices(self) -> tuple[ZoomIndex, ...]:
        return tuple(ZoomIndex(trace) for trace in self._traces)

    def query(self, lanes: Sequence[int], start_ns: int, end_ns: int, num_px: int) -> bytes:
        """An Arrow IPC stream of the rows; ``lanes`` and times are those of the timeline.

        Columns: ``lane``, ``start`` and ``length`` and ``busy`` (ns, exact in a double up to
        104 days), ``count``, ``slice``, ``kind`` and ``name`` (index into the schema's list of
        names) of the longest slice.
        """
        if end_ns <= start_ns or not 1 <= num_px <= MAX_PIXELS:
            raise UsageError(f"a viewport needs a window and 1 to {MAX_PIXELS} pixels")
        if len(lanes) > MAX_LANES or (lanes and not 0 <= min(lanes) <= max(lanes) < self.num_lanes):
            raise UsageError(f"a viewport has up to {MAX_LANES} lanes, below {self.num_lanes}")
        wanted = np.unique(np.asarray(lanes, np.int64))
        source = np.searchsorted(self._bases, wanted, side="right") - 1
        parts = [
            self._of_trace(int(at), wanted[source == at], start_ns, end_ns, num_px)
            for at in np.unique(source)
        ]
        return _stream(parts or [self._of_trace(0, wanted, start_ns, end_ns, num_px)])

    @property
    def num_lanes(self) -> int:
        """Lanes of all traces."""
        return int(self._bases[-1])

    def _of_trace(
        self, at: int, lanes: npt.NDArray[np.int64], start_ns: int, end_ns: int, num_px: int
    ) -> _Part:
        zero, base = self._zeros_ns[at], int(self._bases[at])
        rows = self._indices[at].query(
            (lanes - base).tolist(), zero + start_ns, zero + end_ns, num_px
        )
        return _part(self._traces[at], rows, zero, base)


@dataclass(frozen=True)
class _Part:
    """The rows of one trace, and the names that they point to."""

    columns: dict[str, npt.NDArray[Any]]
    names: list[str]


def _part(trace: Trace, rows: ZoomRows, zero_ns: int, base: int) -> _Part:
    slices = trace.slices
    used, name = np.unique(slices.name[rows.longest], return_inverse=True)
    columns: dict[str, npt.NDArray[Any]] = {
        "lane": rows.lane + np.uint32(base),
        "start": (rows.start_ns - zero_ns).astype(np.float64),
        "length": (rows.end_ns - rows.start_ns).astype(np.float64),
        "busy": rows.busy_ns.astype(np.float64),
        "count": rows.count,
        "slice": rows.longest,
        "kind": slices.kind[rows.longest],
        "name": name.astype(np.uint32),
    }
    return _Part(columns, [_drawable(text) for text in trace.strings.take(used)])


def _stream(parts: Sequence[_Part]) -> bytes:
    """One record batch; the names stand in the schema's metadata, as a JSON list."""
    names: list[str] = []
    for part in parts:
        part.columns["name"] += np.uint32(len(names))
        names += part.names
    columns = {
        key: pa.array(np.concatenate([part.columns[key] for part in parts]))
        for key in parts[0].columns
    }
    batch = pa.RecordBatch.from_pydict(columns)
    schema = batch.schema.with_metadata({"names": json.dumps(names)})
    sink = pa.BufferOutputStream()
    with ipc.new_stream(sink, schema) as writer:
        writer.write_batch(batch.replace_schema_metadata(schema.metadata))
    return bytes(sink.getvalue().to_pybytes())


def _drawable(text: str) -> str:
    """A name as UTF-8 can hold it, not longer than a screen is wide."""
    return text[:NAME_LENGTH].encode("utf-8", "replace").decode("utf-8")
