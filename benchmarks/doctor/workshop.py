"""Runs each piece of work in a process of its own, forked from one that has imported everything.

Importing torch and its compiler takes several seconds, a program of the corpus less than one.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

MOST_SECONDS = 300.0
MODULES = (
    "torch", "torch._dynamo", "torch.optim", "torch.utils.data", "torch.distributed",
    "trnscope", "trnscope.advisor.explain", "trnscope.capture.session",
)  # fmt: skip


class Failed(RuntimeError):
    """A piece of work that ended without a result."""


def in_a_child(work: Callable[[], Any], log: Path) -> Any:
    """What ``work`` returns, as JSON carries it. Its output goes to ``log``."""
    reader, writer = os.pipe()
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        os.setsid()
        os._exit(_work(work, writer, log))
    os.close(writer)
    text = _read(reader, pid)
    _, status = os.waitpid(pid, 0)
    if status != 0 or not text:
        raise Failed(f"see {log}")
    return json.loads(text)


def _work(work: Callable[[], Any], writer: int, log: Path) -> int:
    log.parent.mkdir(parents=True, exist_ok=True)
    file = os.open(log, os.O_CREAT | os.O_TRUNC | os.O_WRONLY)
    os.dup2(file, 1)
    os.dup2(file, 2)
    try:
        text = json.dumps(work())
        sys.stdout.flush()
        with os.fdopen(writer, "w") as pipe:
            pipe.write(text)
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


def _read(reader: int, pid: int) -> str:
    """All that the child writes; nothing where it takes too long."""
    os.set_blocking(reader, False)
    deadline = time.monotonic() + MOST_SECONDS
    parts: list[bytes] = []
    while time.monotonic() < deadline:
        try:
            part = os.read(reader, 1 << 16)
        except BlockingIOError:
            time.sleep(0.01)
            continue
        if not part:
            os.close(reader)
            return b"".join(parts).decode()
        parts.append(part)
    os.killpg(pid, signal.SIGKILL)
    os.close(reader)
    return ""


def import_all() -> None:
    """Import what pieces of work need, here, once."""
    for name in MODULES:
        importlib.import_module(name)
