"""A real headless browser on a real ``trnscope open``."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from trnscope.server.serve import PAGE

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or ""
CHROMIUM_ARGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def require_browser() -> None:
    """Skip with a reason where there is no browser or no built page; in CI both must be there."""
    missing = None
    if not CHROMIUM:
        missing = "needs chromium (Debian, Ubuntu: apt-get install chromium)"
    elif not (PAGE / "index.html").is_file():
        missing = "needs the Explorer's page, which make install builds where Node.js is"
    if missing is None:
        return
    if os.environ.get("CI"):
        pytest.fail(missing)
    pytest.skip(missing)


@contextmanager
def opened(*paths: Path) -> Iterator[str]:
    """The address that ``trnscope open`` prints; stopped with Ctrl+C, as a user does."""
    command = [sys.executable, "-m", "trnscope", "open", "--no-browser", *map(str, paths)]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stdout is not None and process.stderr is not None
    try:
        line = process.stdout.readline()
        words = line.split()
        assert words[:1] == ["Explorer:"], line + process.stderr.read()
        yield words[1]
    finally:
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
    assert (process.returncode, errors) == (0, "")
