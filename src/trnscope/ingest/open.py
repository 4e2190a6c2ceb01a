"""Opens a file of any known format: looks at its content and calls the right importer."""

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

    Raises :class:`UsageError` for a path that cannot be read and :class:`TraceFormatError`
    for a file that is no trace or holds no events.
    """
    kind = sniff(path)
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
