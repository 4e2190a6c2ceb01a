"""Checks of the simulated device, each file in a process of its own.

The device is a process's for good, and torch behaves differently once it has one: the processes of
the other tests must not get it. A check is a function ``check_*``; it fails by raising.
"""

from __future__ import annotations

import ast
import functools
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parent
ROOT = FOLDER.parents[2]
MARK = "@results "


def has_compiler() -> bool:
    """Whether the device can be compiled here."""
    return shutil.which(os.environ.get("CXX", "g++")) is not None


def names_of(module: str) -> list[str]:
    """The checks in a file, without importing it."""
    tree = ast.parse((FOLDER / f"{module}.py").read_text())
    return [
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("check_")
    ]


@functools.cache
def results_of(module: str) -> dict[str, str | None]:
    """What each check of a file raised; None: it passed."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.integration.sim_checks.run", module],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=1200,
    )
    line = next((text for text in done.stdout.splitlines() if text.startswith(MARK)), None)
    if line is None:
        raise AssertionError(f"{module} ended with {done.returncode}:\n{done.stderr[-4000:]}")
    results: dict[str, str | None] = json.loads(line.removeprefix(MARK))
    return results
