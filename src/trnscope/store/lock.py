"""Keeps a store from being removed while it is open, and a source from being another one."""

from __future__ import annotations

import fcntl
import os
from dataclasses import dataclass
from pathlib import Path

from trnscope.store.schema import META_FILE


class StoreLock:
    """A lock on a store's ``meta.json``, held until it is closed or collected."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    @staticmethod
    def shared(store: Path) -> StoreLock | None:
        """A lock of those who read; null where there is no store any more."""
        return _locked(store, fcntl.LOCK_SH)

    @staticmethod
    def exclusive(store: Path) -> StoreLock | None:
        """The lock of who removes; null where somebody reads, or there is no store."""
        return _locked(store, fcntl.LOCK_EX)

    def close(self) -> None:
        """Give the lock up."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __del__(self) -> None:
        self.close()

    def __enter__(self) -> StoreLock:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _locked(store: Path, kind: int) -> StoreLock | None:
    try:
        descriptor = os.open(store / META_FILE, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    lock = StoreLock(descriptor)
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
        # Whoever removed the store before the lock was taken left another file, or none.
        is_same = os.path.samestat(os.fstat(descriptor), (store / META_FILE).stat())
    except OSError:
        lock.close()
        return None
    if not is_same:
        lock.close()
        return None
    return lock


@dataclass(frozen=True)
class FileIdentity:
    """What tells whether a path still leads to the same, unchanged file."""

    device: int
    inode: int
    size: int
    mtime_ns: int
    ctime_ns: int

    @staticmethod
    def of(path: Path) -> FileIdentity:
        """The identity of the file at ``path`` now. Raises OSError where there is none."""
        status = path.stat()
        return FileIdentity(
            status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
        )

    @staticmethod
    def of_all(path: Path, members: tuple[Path, ...]) -> FileIdentity:
        """The identity of a folder's files together; of the path itself where there are none."""
        if not members:
            return FileIdentity.of(path)
        each = [FileIdentity.of(member) for member in members]
        return FileIdentity(
            each[0].device,
            hash(tuple(each)),
            sum(one.size for one in each),
            max(one.mtime_ns for one in each),
            max(one.ctime_ns for one in each),
        )

    def has_changed(self, path: Path) -> bool:
        """Whether ``path`` leads to another file now, or to one that was written to."""
        now = FileIdentity.of(path)
        return (now.device, now.inode, now.size, now.mtime_ns) != (
            self.device,
            self.inode,
            self.size,
            self.mtime_ns,
        )
