"""The local cache of indices: one store per source file, keyed by what the file holds."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from trnscope.errors import UsageError
from trnscope.store.reader import Trace
from trnscope.store.schema import META_FILE, SCHEMA_VERSION

READER_VERSION = 2
"""Raise it whenever the importers make something else of the same file."""

_WHOLE_LIMIT = 32 << 20
_SAMPLE_SIZE = 64 << 10
_NUM_SAMPLES = 64

CACHE_VARIABLE = "TRNSCOPE_CACHE_DIR"
"""Environment variable that names the cache folder."""

LIMIT_VARIABLE = "TRNSCOPE_CACHE_LIMIT_GB"
"""Environment variable with the size that the cache may have, in 10**9 bytes."""

_DEFAULT_LIMIT_GB = 20
_STALE_SECONDS = 24 * 3600

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
    digest = hashlib.blake2b(f"{SCHEMA_VERSION}:{READER_VERSION}:{size}".encode(), digest_size=16)
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

    A store appears whole or not at all: it is built beside its place and renamed. Stores not
    used for longest are removed when the cache outgrows its limit.
    """
    home = cache_directory()
    place = home / content_key(path)
    meta = place / META_FILE
    if not meta.is_file():
        _build(path, place, importer)
        prune(home, keep=place)
    with contextlib.suppress(OSError):  # A read-only cache serves as well.
        os.utime(meta)
    return Trace(place, path)


def cache_limit() -> int:
    """The size in bytes that the cache may have: ``$TRNSCOPE_CACHE_LIMIT_GB``, else 20 GB.

    Raises :class:`UsageError` when the variable holds no number.
    """
    text = os.environ.get(LIMIT_VARIABLE, str(_DEFAULT_LIMIT_GB))
    try:
        return int(float(text) * 1e9)
    except ValueError:
        raise UsageError(f"{LIMIT_VARIABLE} is no number: {text!r}") from None


def prune(home: Path, keep: Path) -> None:
    """Remove the stores used least recently until the rest fits the limit; never ``keep``."""
    left_over = [p for p in home.glob(".partial-*") if time.time() - _used(p) > _STALE_SECONDS]
    for partial in left_over:
        shutil.rmtree(partial, ignore_errors=True)
    stores = sorted((_used(meta), meta.parent) for meta in home.glob(f"*/{META_FILE}"))
    sizes = {store: sum(f.stat().st_size for f in store.iterdir()) for _, store in stores}
    excess = sum(sizes.values()) - cache_limit()
    for _, store in stores:
        if excess <= 0:
            break
        if store != keep:
            shutil.rmtree(store, ignore_errors=True)
            excess -= sizes[store]


def _used(path: Path) -> float:
    return path.stat().st_mtime


def _build(path: Path, place: Path, importer: Importer) -> None:
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        partial = Path(tempfile.mkdtemp(prefix=".partial-", dir=place.parent))
    except OSError as error:
        raise _cannot_write(place.parent, error) from error
    try:
        importer(path, partial)
        shutil.rmtree(place, ignore_errors=True)
        try:
            partial.rename(place)
        except OSError:
            # Another process built the same store meanwhile; its copy serves as well.
            if not (place / META_FILE).is_file():
                raise
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise _cannot_write(place.parent, error) from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _cannot_write(folder: Path, error: OSError) -> UsageError:
    return UsageError(
        f"the cache folder {folder} cannot be written ({error.strerror})",
        hint=f"free some space or name another folder with {CACHE_VARIABLE}",
    )
