"""The local cache of indices: one store per source file, keyed by what the file holds."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from trnscope.errors import UsageError
from trnscope.store.reader import Trace
from trnscope.store.schema import META_FILE, SCHEMA_VERSION

_WHOLE_LIMIT = 32 << 20
_SAMPLE_SIZE = 64 << 10
_NUM_SAMPLES = 64

CACHE_VARIABLE = "TRNSCOPE_CACHE_DIR"
"""Environment variable that names the cache folder."""

Importer = Callable[[Path, Path], None]
"""Reads a source file (first) into an empty folder (second)."""


def cache_directory() -> Path:
    """``$TRNSCOPE_CACHE_DIR``, else ``$XDG_CACHE_HOME/trnscope``, else ``~/.cache/trnscope``."""
    named = os.environ.get(CACHE_VARIABLE)
    if named:
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "trnscope"


def content_key(path: Path) -> str:
    """A key for the content of a file.

    Up to 32 MiB all bytes count. A larger file is known by its size, its time of last change
    and 64 samples of 64 KiB, so that reopening takes no second pass over gigabytes.
    """
    size = path.stat().st_size
    digest = hashlib.blake2b(f"{SCHEMA_VERSION}:{size}".encode(), digest_size=16)
    with path.open("rb") as file:
        if size <= _WHOLE_LIMIT:
            digest.update(file.read())
        else:
            digest.update(str(path.stat().st_mtime_ns).encode())
            for i in range(_NUM_SAMPLES):
                file.seek((size - _SAMPLE_SIZE) * i // (_NUM_SAMPLES - 1))
                digest.update(file.read(_SAMPLE_SIZE))
    return digest.hexdigest()


def open_cached(path: Path, importer: Importer) -> Trace:
    """Open a source through the cache, reading it first where it is new.

    A store appears whole or not at all: it is built beside its place and renamed.
    """
    home = cache_directory()
    place = home / content_key(path)
    if not (place / META_FILE).is_file():
        _build(path, place, importer)
    return Trace(place, path)


def _build(path: Path, place: Path, importer: Importer) -> None:
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        partial = Path(tempfile.mkdtemp(prefix=".partial-", dir=place.parent))
    except OSError as error:
        raise UsageError(
            f"the cache folder {place.parent} cannot be written ({error.strerror})",
            hint=f"name another with {CACHE_VARIABLE}",
        ) from error
    try:
        importer(path, partial)
        shutil.rmtree(place, ignore_errors=True)
        try:
            partial.rename(place)
        except OSError:
            # Another process built the same store meanwhile; its copy serves as well.
            if not (place / META_FILE).is_file():
                raise
    finally:
        shutil.rmtree(partial, ignore_errors=True)
