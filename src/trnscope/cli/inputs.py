"""Opening what the user named: patterns expanded, progress shown on long work."""

from __future__ import annotations

import glob
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from trnscope.api import Progress
from trnscope.errors import UsageError
from trnscope.opened import OpenedProfile

_QUIET_SECONDS = 0.5
"""Work shorter than this shows no progress line."""


def open_profile(paths: Sequence[Path]) -> OpenedProfile:
    """Open the named traces, with a progress line on a terminal."""
    from trnscope.api import open as open_traces

    files = expand(paths)
    try:
        with progress_line("reading") as report:
            return open_traces(*files, progress=report)
    except UsageError as error:
        raise _naming_traces(error, files) from None


def _naming_traces(error: UsageError, paths: Sequence[Path]) -> UsageError:
    """The error; for a folder of traces that no run recorded, with what to write instead."""
    from trnscope.capture.record import SUFFIX

    for folder in paths:
        if error.message != f"{folder}: is a directory":
            continue
        files = sorted(folder.glob("*.json*"))
        traces = [path for path in files if not path.name.endswith(SUFFIX)]
        if traces:
            name = traces[0] if len(traces) == 1 else folder / "*.json*"
            what = "a .json file" if len(traces) == 1 else f"{len(traces)} .json files"
            return UsageError(
                f"{folder}: holds {what} and no recorded run",
                f"if they are traces, write '{name}' (the files of one job are its ranks)",
            )
    return error


def expand(paths: Sequence[Path]) -> list[Path]:
    """The files that the arguments name.

    A file that exists is taken literally, so that brackets in its name are no pattern; else
    an argument with ``*``, ``?`` or ``[`` is expanded, in sorted order. The records beside the
    traces of a run, which a shell's pattern finds as well, are left out.
    """
    from trnscope.capture.folders import without_records

    return without_records([found for path in paths for found in _matches(path)])


def _matches(path: Path) -> list[Path]:
    text = str(path)
    if path.exists() or not glob.has_magic(text):
        return [path]
    found = sorted(glob.glob(text, recursive=True))  # noqa: PTH207 (patterns may be absolute)
    if not found:
        raise UsageError(f"{text}: no file matches", "check the pattern")
    return [Path(one) for one in found]


@contextmanager
def progress_line(verb: str) -> Iterator[Progress]:
    """A line on stderr that shows how far a long work is; erased at the end.

    Only on a terminal, and only after half a second.
    """
    line = _Line(verb, shown=sys.stderr.isatty())
    try:
        yield line.report
    finally:
        line.erase()


class _Line:
    """The line's state: when it was begun and when it was last written."""

    def __init__(self, verb: str, *, shown: bool) -> None:
        self._verb = verb
        self._shown = shown
        self._next = time.monotonic() + _QUIET_SECONDS
        self._written = False

    def report(self, done: int, total: int) -> None:
        """Bytes so far and in all; writes at most ten times a second."""
        now = time.monotonic()
        if not self._shown or now < self._next:
            return
        self._next = now + 0.1
        share = f"{100 * done // total} % of " if total else ""
        sys.stderr.write(f"\r\x1b[K{self._verb} {share}{max(total, done) / 1e6:,.0f} MB")
        sys.stderr.flush()
        self._written = True

    def erase(self) -> None:
        """Leave the terminal as it was."""
        if self._written:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
