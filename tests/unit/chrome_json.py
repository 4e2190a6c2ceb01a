"""Writes small Chrome traces for tests and opens them."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from trnscope.ingest import open_trace
from trnscope.model.kinds import SliceKind
from trnscope.store.reader import Trace


def complete(name: str, category: str, ts: Any, dur: Any, **more: Any) -> dict[str, Any]:
    """A complete event on pid 1, tid 1, unless ``more`` says otherwise."""
    event = {"ph": "X", "name": name, "cat": category, "pid": 1, "tid": 1, "ts": ts, "dur": dur}
    return {**event, **more}


def kernel(name: str, ts: Any, dur: Any, **args: Any) -> dict[str, Any]:
    """A kernel on device 0, stream 7."""
    given = {"device": 0, "stream": 7, **args}
    return complete(name, "kernel", ts, dur, pid=0, tid=7, args=given)


def write(path: Path, events: list[dict[str, Any]], **header: Any) -> Path:
    """Write a trace document."""
    path.write_text(json.dumps({**header, "traceEvents": events}), encoding="utf-8")
    return path


def open_path(path: Path) -> Trace:
    """Read a file into a new store beside it."""
    directory = Path(tempfile.mkdtemp(dir=path.parent)) / "store"
    open_trace(path, directory)
    return Trace(directory, path)


def open_events(tmp_path: Path, events: list[dict[str, Any]], **header: Any) -> Trace:
    """Write and open a trace."""
    return open_path(write(tmp_path / "trace.json", events, **header))


def named(trace: Trace) -> dict[str, int]:
    """Slice id by name; names must be unique."""
    names = trace.strings.take(trace.slices.name)
    assert len(set(names)) == len(names)
    return {name: i for i, name in enumerate(names)}


def kinds(trace: Trace) -> dict[str, SliceKind]:
    """Kind by name."""
    return {name: SliceKind(trace.slices.kind[i]) for name, i in named(trace).items()}


def times(trace: Trace) -> dict[str, tuple[int, int]]:
    """Start and duration, ns, by name."""
    at = trace.slices
    return {name: (int(at.start_ns[i]), int(at.dur_ns[i])) for name, i in named(trace).items()}


def attribute(trace: Trace, key: str) -> dict[str, Any]:
    """Values of an attribute, by name of the slice."""
    found = trace.attribute(key)
    if found is None:
        return {}
    names = trace.strings.take(trace.slices.name[found.slices])
    values = trace.strings.take(found.values) if found.is_text else found.values.tolist()
    return dict(zip(names, values, strict=True))


def warnings(trace: Trace) -> dict[str, int]:
    """Count by code of the file's warnings."""
    return {warning.code: warning.count for warning in trace.health.warnings}
