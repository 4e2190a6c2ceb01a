"""Whether the Python frames of one more step would still fit into memory when recording ends.

While torch records, a frame takes some 10 bytes; when it stops, it makes an object of each, and
memory grows by two orders of magnitude at once. A step that runs a Python loop over characters
holds millions of frames, and eight such steps have filled 24 GB.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

GROWTH_AT_THE_END = 80
"""Bytes at the end for each byte while recording: 66 were measured (torch 2.13, CPU only, 51 MB a
step, 3.3 GB a step once stopped)."""
SHARE_OF_FREE = 0.5
"""Of the memory that is free; the rest is for the file that is then written, and for the script."""


class StackRoom:
    """Ask :meth:`is_left` at the end of each recorded step."""

    def __init__(
        self,
        used_bytes: Callable[[], int | None] | None = None,
        free_bytes: Callable[[], int | None] | None = None,
    ) -> None:
        self._used_bytes = used_bytes or resident_bytes
        self._free_bytes = free_bytes or available_bytes
        self._after_first: int | None = None
        self._num_steps = 0
        self.is_short = False
        """Whether it was answered no."""

    def is_left(self) -> bool:
        """Whether another step may be recorded; yes where the system does not tell.

        What a step adds is known from the second one on: the first also brings what is made once.
        """
        used, free = self._used_bytes(), self._free_bytes()
        if used is None or free is None:
            return True
        self._num_steps += 1
        if self._after_first is None:
            self._after_first = used
            return True
        each = max(used - self._after_first, 0) / (self._num_steps - 1)
        at_the_end = GROWTH_AT_THE_END * each * (self._num_steps + 1)
        self.is_short = at_the_end > SHARE_OF_FREE * free
        return not self.is_short


def resident_bytes() -> int | None:
    """Memory of this process; absent where the system has no /proc."""
    try:
        pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    except (OSError, ValueError, IndexError):
        return None
    return pages * os.sysconf("SC_PAGE_SIZE")


def available_bytes() -> int | None:
    """Memory that a program can still get; absent where the system has no /proc."""
    try:
        lines = Path("/proc/meminfo").read_text("ascii").splitlines()
        kilobytes = next(line for line in lines if line.startswith("MemAvailable:")).split()[1]
    except (OSError, ValueError, StopIteration):
        return None
    return int(kilobytes) * 1024
