"""Who waits for whom while the simulated device is compiled."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

from trnscope.sim.build import DeviceBuildError, _locked, _run

WAITER = """
import sys
from pathlib import Path
from trnscope.sim.build import _locked
with _locked(Path(sys.argv[1])):
    print("mine")
"""


def test_one_that_waits_names_the_process_that_compiles(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    with _locked(lock):
        waiter = subprocess.Popen(
            [sys.executable, "-c", WAITER, str(lock)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert waiter.stderr is not None
        line = waiter.stderr.readline()
    out, _ = waiter.communicate(timeout=60)
    assert line.startswith(f"trnscope: waiting for process {os.getpid()}, which compiles the")
    assert out == "mine\n"
    assert lock.read_text() == str(waiter.pid)


def test_one_that_need_not_wait_says_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with _locked(tmp_path / "lock"):
        pass
    assert capsys.readouterr().err == ""


def test_a_compiler_that_is_gone_is_told_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(DeviceBuildError, match=r"cannot run .*/g\+\+: No such file"):
        _run([str(tmp_path / "g++"), "-c"])
