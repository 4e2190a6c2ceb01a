"""Files that appear whole or not at all, and never replace another one unasked."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from trnscope.errors import UsageError

_LONGEST_STEM = 100
"""Characters of the file's name in the temporary one, which must not be too long."""


def require_absent(path: Path, overwrite: bool) -> None:
    """Raise :class:`UsageError` if ``path`` is there and may not be replaced."""
    if path.is_dir():
        raise UsageError(f"{path}: is a directory", "name a file")
    if not overwrite and path.exists():
        raise UsageError(f"{path}: exists already", "name another file, or give --overwrite")


@contextmanager
def whole_file(path: Path, *, overwrite: bool) -> Iterator[Path]:
    """Give a temporary path beside ``path``; what was written there becomes ``path`` at the end.

    After an error nothing is left, and an older file at ``path`` is as it was.
    """
    require_absent(path, overwrite)
    part = path.with_name(f".{path.name[:_LONGEST_STEM]}.{secrets.token_hex(8)}.part")
    # The system takes its umask off these bits, as it does for any new file.
    os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
    try:
        yield part
        require_absent(path, overwrite)
        part.replace(path)
    finally:
        with suppress(FileNotFoundError):
            part.unlink()
