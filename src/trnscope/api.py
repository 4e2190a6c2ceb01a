"""The functions that ``import trnscope`` offers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from trnscope.errors import UsageError
from trnscope.model.source import SourcePlace
from trnscope.opened import OpenedProfile
from trnscope.store.cache import open_cached
from trnscope.store.reader import Trace

Progress = Callable[[int, int], None]
"""Called with the bytes read so far and the bytes in all."""


AnyPath = str | PathLike[str]


def open(*paths: AnyPath | Iterable[AnyPath], progress: Progress | None = None) -> OpenedProfile:
    """Open one trace, or the traces of the ranks of one job: paths, or lists of them.

    A path may be a folder: that of a run which trnscope recorded, or of a Neuron profile (one trace
    a rank, or the tables of Neuron Explorer).
    Each file is read once; its index is kept in the cache, and opening it again takes
    milliseconds. Raises :class:`UsageError` for a path that cannot be read and
    :class:`TraceFormatError` for a file that is no trace.
    """
    named = [path for given in paths for path in _paths_in(given)]
    if not named:
        raise UsageError("no trace given", hint="name a trace file")
    found = [each for path in named for each in _sources_at(path)]
    return OpenedProfile(tuple(_open_one(path, place, progress) for path, place in found))


def _paths_in(given: object) -> list[Path]:
    """The path, or the paths of a list; a dict is no list of paths, nor are bytes one."""
    if isinstance(given, Iterable) and not isinstance(given, str | PathLike | bytes | Mapping):
        return [_path(one) for one in given]
    return [_path(given)]


def _path(given: object) -> Path:
    # A PathLike may stand for a path in bytes as well.
    if isinstance(given, str | PathLike) and isinstance(fspath(given), str):
        return Path(given)
    kind = type(given).__name__
    raise UsageError(
        f"trnscope.open takes paths (str or Path), or lists of them, not {kind}",
        hint='write trnscope.open("trace.json")',
    )


def _sources_at(path: Path) -> list[tuple[Path, SourcePlace | None]]:
    if not path.is_dir():
        return [(path, None)]
    from trnscope.capture.folders import traces_of_run

    if traces := traces_of_run(path):
        return [(trace, None) for trace in traces]
    from trnscope.ingest.neuron_folder import find_sources

    return [(one.path, one.place) for one in find_sources(path)]


def _open_one(path: Path, place: SourcePlace | None, progress: Progress | None) -> Trace:
    # The importers are needed only for a file that is not in the cache.
    def read(source: Path, directory: Path) -> None:
        from trnscope.ingest import open_trace

        open_trace(source, directory, progress)

    if place is None and not path.is_file():
        # Lets the importer say precisely what is wrong with the path.
        from trnscope.ingest.sniff import require_readable

        require_readable(path)
    return open_cached(path, read, place)


def profile(*args: Any, **kwargs: Any) -> Any:
    """Profile a part of a program; see :func:`trnscope.capture.profile.profile`."""
    from trnscope.capture.profile import profile as capture

    return capture(*args, opener=open, **kwargs)
