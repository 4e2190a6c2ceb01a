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

from trnscope.errors import TraceFormatError, UsageError
from trnscope.model.source import SourcePlace
from trnscope.store.lock import FileIdentity, StoreLock
from trnscope.store.reader import Trace
from trnscope.store.schema import META_FILE, SCHEMA_VERSION, StoreMeta, load_sound_meta

READER_VERSION = 9
"""Raise it whenever the importers make something else of the same file."""

_WHOLE_LIMIT = 32 << 20
_SAMPLE_SIZE = 64 << 10
_NUM_SAMPLES = 64

CACHE_VARIABLE = "TRNSCOPE_CACHE_DIR"
"""Environment variable that names the cache folder."""

LIMIT_VARIABLE = "TRNSCOPE_CACHE_LIMIT_GB"
"""Environment variable with the size that the cache may have, in 10**9 bytes."""

_DEFAULT_LIMIT_GB = 20
_ATTEMPTS = 10
_STALE_SECONDS = 24 * 3600

Found = tuple[StoreLock, StoreMeta]
"""A store that cannot be removed any more, and what it holds."""

Importer = Callable[[Path, Path], None]
"""Reads a source file (first) into an empty folder (second)."""


def cache_directory() -> Path:
    """``$TRNSCOPE_CACHE_DIR``, else ``$XDG_CACHE_HOME/trnscope``, else ``~/.cache/trnscope``."""
    named = os.environ.get(CACHE_VARIABLE)
    if named:
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "trnscope"


def content_key(path: Path, members: tuple[Path, ...] = ()) -> str:
    """A key for the content of a file, or of a folder's files and their names.

    Up to 32 MiB all bytes count. A larger file is known by its size, its times of last change
    and 64 samples of 64 KiB, so that reopening takes no second pass over gigabytes. The time of
    its last status change is among them, which no program can set back.
    """
    if members:
        named = [f"{os.path.relpath(one, path)}:{content_key(one)}" for one in members]
        return hashlib.blake2b("\n".join(named).encode(), digest_size=16).hexdigest()
    status = path.stat()
    size = status.st_size
    digest = hashlib.blake2b(f"{SCHEMA_VERSION}:{READER_VERSION}:{size}".encode(), digest_size=16)
    with path.open("rb") as file:
        if size <= _WHOLE_LIMIT:
            digest.update(file.read())
        else:
            digest.update(f"{status.st_mtime_ns}:{status.st_ctime_ns}".encode())
            for i in range(_NUM_SAMPLES):
                file.seek((size - _SAMPLE_SIZE) * i // (_NUM_SAMPLES - 1))
                digest.update(file.read(_SAMPLE_SIZE))
    return digest.hexdigest()


def open_cached(path: Path, importer: Importer, beside: SourcePlace | None = None) -> Trace:
    """Open a source through the cache, reading it first where it is new.

    A store appears whole or not at all: it is built beside its place and renamed. One that is
    damaged is built again. Stores not used for longest are removed when the cache outgrows its
    limit, but none that is open, here or in another process. Raises
    :class:`TraceFormatError` for a file that keeps changing while it is read.
    """
    home = cache_directory()
    members = () if beside is None else beside.members
    for _ in range(_ATTEMPTS):
        before = FileIdentity.of_all(path, members)
        place = home / content_key(path, members)
        found = _find_sound(place)
        is_new = found is None
        if found is None:
            found = _build(path, place, importer, before, members)
        if found is not None and FileIdentity.of_all(path, members) == before:
            if is_new:
                prune(home)
            lock, meta = found
            return Trace(place, path, meta=meta, identity=before, lock=lock, beside=beside)
    raise TraceFormatError(path, "changes while it is read", hint="wait until it is written")


def _find_sound(place: Path) -> Found | None:
    """The store at ``place``, locked; null where there is none, or a damaged one."""
    lock = StoreLock.shared(place)
    meta = None if lock is None else load_sound_meta(place)
    if lock is None or meta is None:
        return None
    with contextlib.suppress(OSError):  # A read-only cache serves as well.
        os.utime(place / META_FILE)
    return lock, meta


def cache_limit() -> int:
    """The size in bytes that the cache may have: ``$TRNSCOPE_CACHE_LIMIT_GB``, else 20 GB.

    Raises :class:`UsageError` when the variable holds no number.
    """
    text = os.environ.get(LIMIT_VARIABLE, str(_DEFAULT_LIMIT_GB))
    try:
        return int(float(text) * 1e9)
    except ValueError:
        raise UsageError(f"{LIMIT_VARIABLE} is no number: {text!r}") from None


def prune(home: Path) -> None:
    """Remove the stores used least recently until the rest fits the limit; none in use."""
    for partial in home.glob(".partial-*"):
        if time.time() - _used(partial) > _STALE_SECONDS:
            shutil.rmtree(partial, ignore_errors=True)
    # A pattern's star finds hidden names too, and those are stores still being built.
    stores = sorted((_used(meta), meta.parent) for meta in home.glob(f"[!.]*/{META_FILE}"))
    sizes = {store: _size(store) for _, store in stores}
    excess = sum(sizes.values()) - cache_limit()
    for _, store in stores:
        if excess <= 0:
            break
        if _remove_unused(store):
            excess -= sizes[store]


def _used(path: Path) -> float:
    """When it was used last; long ago where another process removed it meanwhile."""
    with contextlib.suppress(OSError):
        return path.stat().st_mtime
    return 0.0


def _size(store: Path) -> int:
    with contextlib.suppress(OSError):
        return sum(file.stat().st_size for file in store.iterdir())
    return 0


def _remove_unused(store: Path) -> bool:
    """Remove a store that nobody has open; whether it is gone."""
    lock = StoreLock.exclusive(store)
    if lock is None:
        return False
    with lock:
        _move_away(store)
    return True


def _move_away(place: Path) -> None:
    """Remove a folder so that it is gone at once for everybody."""
    trash = Path(tempfile.mkdtemp(prefix=".partial-", dir=place.parent))
    with contextlib.suppress(OSError):  # Another process was faster.
        place.rename(trash / place.name)
    shutil.rmtree(trash, ignore_errors=True)


def _build(
    path: Path, place: Path, importer: Importer, before: FileIdentity, members: tuple[Path, ...]
) -> Found | None:
    """Build the store and lock it; null where the source changed meanwhile."""
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        partial = Path(tempfile.mkdtemp(prefix=".partial-", dir=place.parent))
    except OSError as error:
        raise _cannot_write(place.parent, error) from error
    try:
        importer(path, partial)
        is_same = FileIdentity.of_all(path, members) == before
        return _put_in_place(partial, place) if is_same else None
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise _cannot_write(place.parent, error) from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _put_in_place(partial: Path, place: Path) -> Found | None:
    """Rename a finished store; a sound one that another process put there meanwhile serves too.

    It is locked before others can see it, so that none can remove it in between.
    """
    ours = _find_sound(partial)
    for _ in range(_ATTEMPTS):
        with contextlib.suppress(OSError):
            partial.rename(place)
            return ours
        theirs = _find_sound(place)
        if theirs is not None:
            return theirs
        if place.exists() and load_sound_meta(place) is None:
            _move_away(place)
    return None


def _cannot_write(folder: Path, error: OSError) -> UsageError:
    is_full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    return UsageError(
        f"the cache folder {folder} cannot be written ({error.strerror})",
        hint=f"{'free some space or ' if is_full else ''}name another folder with {CACHE_VARIABLE}",
    )
