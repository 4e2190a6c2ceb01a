"""The host's and the HBM's usage over time, from a system profile, as counters."""

from __future__ import annotations

import numpy as np

from trnscope.ingest.neuron_places import NeuronTracks
from trnscope.ingest.neuron_rows import Rows, is_time
from trnscope.ingest.neuron_tables import NeuronTables
from trnscope.store.batches import CounterBatch
from trnscope.store.tables import Bool
from trnscope.store.writer import TraceWriter

_HBM_KEYS = (
    "total_bytes",
    "tensors_bytes",
    "weights_bytes",
    "scratchpad_bytes",
    "shared_scratchpad_bytes",
    "collectives_bytes",
    "dram_spill_bytes",
    "profiler_buffers_bytes",
)


def add_host_usage(tables: NeuronTables, writer: TraceWriter, tracks: NeuronTracks) -> None:
    """Add CpuUsage, HostMemUsage and SystemProfileHbmUsage."""
    for rows in tables.batches("CpuUsage", ("timestamp", "util_percent", "cpu_id")):
        add_cpu_usage(rows, writer, tracks)
    for rows in tables.batches("HostMemUsage", ("timestamp", "used_bytes", "used_percent")):
        add_samples(rows, writer, tracks.counter(None), "host memory", "used_bytes")
    columns = ("timestamp", "device_idx", "hbm_idx", *_HBM_KEYS)
    for rows in tables.batches("SystemProfileHbmUsage", columns):
        _add_hbm(rows, writer, tracks)


def add_cpu_usage(rows: Rows, writer: TraceWriter, tracks: NeuronTracks) -> None:
    """One series a CPU, and one for their average."""
    codes, words = rows.texts("cpu_id")
    for code, word in enumerate(words):
        wanted = codes == code
        label = "cpu average" if word == "average" else f"cpu {word}"
        add_samples(rows, writer, tracks.counter(None), label, "util_percent", wanted)


def _add_hbm(rows: Rows, writer: TraceWriter, tracks: NeuronTracks) -> None:
    places = np.stack((rows.ints("device_idx"), rows.ints("hbm_idx")))
    for device, hbm in np.unique(places, axis=1).T.tolist():
        wanted = (places[0] == device) & (places[1] == hbm)
        track = tracks.counter(None, f"Neuron device {device}, HBM {hbm}")
        for key in _HBM_KEYS:
            add_samples(rows, writer, track, "HBM memory", key, wanted)


def add_samples(
    rows: Rows,
    writer: TraceWriter,
    track: int,
    name: str,
    key: str,
    wanted: Bool | None = None,
) -> None:
    """Add the samples of one column as one series."""
    time, value = rows.ints("timestamp"), rows.floats(key)
    has = is_time(time) & np.isfinite(value)
    if wanted is not None:
        has &= wanted
    if has.any():
        series = writer.counter_series(track, name, key)
        count = int(has.sum())
        writer.add_counter_samples(
            CounterBatch(np.full(count, series, np.uint32), time[has], value[has])
        )
