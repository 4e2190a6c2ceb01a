"""Which frames of a Python stack are shown where there is no room for all of them."""

from __future__ import annotations

import re
import sys

_FILE = re.compile(r"^(?P<file>.*\.py)[(:]")
"""A frame with a file, as torch writes it: ``train.py(12): step``."""
_RECORDER = "trnscope/capture/"
_INSTALLED = ("/site-packages/", "/dist-packages/", "/lib/python")


def shown_frames(stack: tuple[str, ...], most: int) -> tuple[tuple[str, ...], int]:
    """At most so many frames, innermost first as in the stack, and how many are left out.

    The recorder's own frames are never shown nor counted. Where the rest is too many, those of
    the user's files are kept before those of torch and other libraries, the innermost first.
    """
    frames = [frame for frame in stack if _RECORDER not in frame.replace("\\", "/")]
    by_worth = sorted(range(len(frames)), key=lambda at: (not is_users(frames[at]), at))
    kept = sorted(by_worth[:most])
    return tuple(frames[at] for at in kept), len(frames) - len(kept)


def is_users(frame: str) -> bool:
    """Whether it is of a file of neither torch, Python nor an installed package.

    torch leaves the folders of ``sys.path`` out of the names of files.
    """
    match = _FILE.match(frame)
    if match is None:
        return False
    file = match["file"].replace("\\", "/")
    if any(folder in file for folder in _INSTALLED):
        return False
    first = file.split("/")[0].removesuffix(".py")
    return first not in sys.stdlib_module_names and first != "torch"
