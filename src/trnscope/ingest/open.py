"""Opens a source of any known format: looks at its content and calls the right importer."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from trnscope.ingest.sniff import FileKind, sniff

_SEGMENT_EVENTS = 1 << 18
"""Events handed over at once: few enough that their columns stay in the processor's cache."""

Progress = Callable[[int, int], None]
"""Called with the bytes read so far and the bytes in all."""


def open_trace(path: Path, directory: Path, progress: Progress | None = None) -> None:
    """Read the trace at ``path`` into a new store in ``directory`` (empty or absent).

    A folder must hold tables of Neuron Explorer; :func:`trnscope.ingest.neuron_folder.find_sources`
    finds the traces in any other.
    Raises :class:`UsageError` for a path that cannot be read and :class:`TraceFormatError`
    for a file that is no trace or holds no events.
    """
    if path.is_dir():
        from trnscope.ingest.neuron_profile import read_neuron_folder
        from trnscope.store.writer import TraceWriter

        read_neuron_folder(path, TraceWriter(directory, path), progress)
        return
    kind = sniff(path)
    if kind is FileKind.NEURON:
        _open_neuron_json(path, directory, progress)
        return
    if kind is FileKind.SQLITE:
        from trnscope.ingest.nsys import read_nsys
        from trnscope.store.writer import TraceWriter

        read_nsys(path, TraceWriter(directory, path), progress)
        return
    from trnscope import _native
    from trnscope.ingest.arg_keys import scanner_keys
    from trnscope.ingest.chrome import read_chrome_trace

    scanner = _native.Scanner(scanner_keys(), os.cpu_count() or 1, segment_events=_SEGMENT_EVENTS)
    read_chrome_trace(path, directory, kind is FileKind.GZIP_JSON, scanner, progress)


def _open_neuron_json(path: Path, directory: Path, progress: Progress | None) -> None:
    from trnscope.ingest.neuron_json import read_neuron_json
    from trnscope.ingest.sniff import neuron_kind
    from trnscope.store.writer import TraceWriter

    kind = neuron_kind(path)
    if kind is not None:
        read_neuron_json(path, kind, TraceWriter(directory, path), progress)
