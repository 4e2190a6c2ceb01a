"""The rows of Python functions: what they are called, and which one called which."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from trnscope.sim.virtual_trace.recording import HostKind, HostRow

MODULE = "nn.Module: "
_MODULE_NUMBER = re.compile(r"_(\d+)$")


def folders_of_code(search_path: Iterable[str]) -> tuple[str, ...]:
    """The folders of ``sys.path``, longest first, each with its separator."""
    found = {str(Path(one).absolute()).rstrip(os.sep) + os.sep for one in search_path}
    return tuple(sorted(found, key=lambda one: (-len(one), one)))


def short_name(name: str, folders: Sequence[str]) -> str:
    """``/home/me/train.py(4): step`` as ``train.py(4): step``: without the folder it is found in.

    So does torch's profiler; and the same program gives the same names wherever it lies.
    """
    folder = next((one for one in folders if name.startswith(one)), "")
    return name[len(folder) :]


def python_args(host: Iterable[HostRow]) -> Mapping[int, dict[str, object]]:
    """For the id of each Python row: its number, its caller's, and a module's number in its class.

    Rows come as they begin, so the caller is the last one of the thread that still runs.
    """
    found: dict[int, dict[str, object]] = {}
    running: dict[int, list[HostRow]] = {}
    for row in host:
        if row.kind is not HostKind.PYTHON:
            continue
        stack = running.setdefault(row.thread, [])
        while stack and stack[-1].end_ns < row.end_ns:
            stack.pop()
        parent = found[stack[-1].id]["Python id"] if stack else None
        args: dict[str, object] = {"Python id": len(found) + 1, "Python parent id": parent}
        module = _MODULE_NUMBER.search(row.name) if row.name.startswith(MODULE) else None
        if module is not None:
            args["Python module id"] = int(module[1])
        found[row.id] = args
        stack.append(row)
    return found
