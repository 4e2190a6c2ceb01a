"""Files that appear whole or not at all, and never replace another one unasked."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from trnscope.errors import UsageError


def require_absent(path: Path, overwrite: bool) -> None:
    """Raise :class:`UsageError` if ``path`` is there and may not be replaced."""
    if path.is_dir():
        raise UsageError(f"{path}: is a directory", "name a file")
    if not overwrite and path.exists():
        raise UsageError(f"{path}: exists already", "name another file, or allow overwriting")


@contextmanager
def whole_file(path: Path, *, overwrite: bool) -> Iterator[Path]:
    """Give a temporary path beside ``path``; what was written there becomes ``path`` at the end.

    After an error nothing is left, and an older file at ``path`` is as it was.
    """
    require_absent(path, overwrite)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
    os.close(handle)
    part = Path(name)
    try:
        yield part
        require_absent(path, overwrite)
        part.chmod(0o666 & ~_umask())
        part.replace(path)
    finally:
        with suppress(FileNotFoundError):
            part.unlink()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
