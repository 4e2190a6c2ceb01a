"""Run a command as a whole process and say how long it took and how much memory it reached.

This module and ``run.py`` import nothing large: Linux counts the memory of the process that
starts a command into the peak of that command.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class ProcessRun:
    """One finished command. With several processes the peak is that of the largest."""

    seconds: float
    cpu_seconds: float
    """User and system time, over all threads and child processes."""
    peak_bytes: int
    output: str


class CommandFailed(Exception):
    """A command ended with an error; carries the end of what it printed."""


def run(command: Sequence[str | Path], environment: Mapping[str, str] | None = None) -> ProcessRun:
    """Run the command to its end, with ``environment`` added to ours."""
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        start = time.perf_counter()
        process = subprocess.Popen(
            [str(word) for word in command],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=errors,
            env={**os.environ, **(environment or {})},
        )
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        errors.seek(0)
        text = output.read().decode()
        if process.returncode != 0:
            tail = (text + errors.read().decode(errors="replace"))[-2000:]
            raise CommandFailed(f"{command[0]} ended with {process.returncode}:\n{tail}")
    return ProcessRun(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024, text)
