"""Options, records and the command line of a recorded script, without running one."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from trnscope.capture.options import CaptureSettings, ProcessSettings, RunOptions, StepsBy
from trnscope.capture.record import CaptureRecord, Overhead, record_path
from trnscope.capture.run import BOOTSTRAP, RunResult, child_environment, command_for
from trnscope.errors import TraceFormatError, TrnscopeError, UsageError

RECORD = CaptureRecord(
    pid=7,
    trace=Path("rank1.5.pt.trace.json"),
    rank=1,
    world_size=2,
    steps_by="optimizer",
    first_step=3,
    num_steps=8,
    activities=("CPU",),
    command=("train.py", "--epochs", "1"),
    overhead=Overhead(150, 100, 8, 5, (140, 190), (90, 120), 10, 20, 30),
)


def test_a_record_survives_its_file(tmp_path: Path) -> None:
    assert RECORD.trace is not None
    path = record_path(tmp_path / RECORD.trace)
    assert path.name == "rank1.5.capture.json"
    RECORD.write(path)
    read = CaptureRecord.read(path)
    assert read.trace == tmp_path / "rank1.5.pt.trace.json"
    assert read.overhead == RECORD.overhead
    assert read.command == ("train.py", "--epochs", "1")
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]
    document = json.loads(path.read_text())
    assert document["schema"] == 1
    assert document["overhead"]["slowdown_ratio"] == 0.5
    assert document["overhead"]["slowdown_is_clear"] is True


def test_a_compressed_trace_has_the_same_name_of_record() -> None:
    assert record_path(Path("a/rank0.1.pt.trace.json.gz")) == Path("a/rank0.1.capture.json")


def test_members_of_a_later_minor_form_are_ignored(tmp_path: Path) -> None:
    path = tmp_path / "x.capture.json"
    path.write_text(json.dumps({"schema": 1, "pid": 3, "mood": "fine"}))
    assert CaptureRecord.read(path) == CaptureRecord(pid=3)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "no capture record"),
        ("[]", "no capture record"),
        ('{"schema": 1}', "no capture record"),
        ('{"schema": 2, "pid": 1}', "written by version 2"),
    ],
)
def test_what_is_no_record_says_so(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "x.capture.json"
    path.write_text(text)
    with pytest.raises(TraceFormatError, match=problem):
        CaptureRecord.read(path)


def test_slowdown_is_absent_without_both_step_times() -> None:
    assert Overhead(profiled_step_ns=5).slowdown_ratio is None
    assert Overhead(unprofiled_step_ns=5).slowdown_ratio is None
    assert Overhead(120, 100).slowdown_ratio == pytest.approx(0.2)


@pytest.mark.parametrize(
    ("profiled", "unprofiled", "clear"),
    [
        ((150, (140, 190)), (100, (90, 120)), True),
        ((150, (140, 190)), (100, (90, 151)), False),  # a step without took longer
        ((150, (99, 190)), (100, (90, 120)), False),  # a recorded step took less
        ((80, (70, 85)), (100, (90, 120)), False),  # noise, not a gain
    ],
)
def test_a_slowdown_is_clear_only_beyond_the_noise(
    profiled: tuple[int, tuple[int, int]], unprofiled: tuple[int, tuple[int, int]], clear: bool
) -> None:
    overhead = Overhead(profiled[0], unprofiled[0], 8, 5, profiled[1], unprofiled[1])
    assert overhead.slowdown_is_clear is clear
    assert Overhead(5, 4).slowdown_is_clear is None


def test_settings_survive_the_environment() -> None:
    settings = ProcessSettings(
        CaptureSettings(steps=3, warmup=0, steps_by=StepsBy.FORWARD, with_stack=True, gzip=True),
        Path("/out"),
        Path("/out/.run-1"),
    )
    assert ProcessSettings.from_text(settings.to_text()) == settings


@pytest.mark.parametrize("wrong", [{"steps": 0}, {"warmup": -1}, {"max_seconds": 0.0}])
def test_impossible_settings_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(UsageError):
        CaptureSettings(**wrong)  # type: ignore[arg-type]


def test_command_lines(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("")
    assert command_for(RunOptions(str(script), ("-x",))) == [sys.executable, str(script), "-x"]
    module = RunOptions("pkg.train", ("1",), is_module=True)
    assert command_for(module) == [sys.executable, "-m", "pkg.train", "1"]
    assert command_for(RunOptions("sh", ("-c", "true"))) == [shutil.which("sh"), "-c", "true"]
    with pytest.raises(UsageError, match="no such script or program"):
        command_for(RunOptions(str(tmp_path / "missing.py")))


def test_a_folder_with_a_main_file_is_a_script(tmp_path: Path) -> None:
    (tmp_path / "__main__.py").write_text("")
    assert command_for(RunOptions(str(tmp_path))) == [sys.executable, str(tmp_path)]


def test_the_environment_keeps_the_users_own_paths(tmp_path: Path) -> None:
    settings = ProcessSettings(CaptureSettings(), tmp_path, tmp_path)
    env = child_environment(settings, {"PYTHONPATH": "/mine", "HOME": "/h"})
    assert env["PYTHONPATH"] == f"{BOOTSTRAP}{os.pathsep}/mine"
    assert env["HOME"] == "/h"
    assert child_environment(settings, {})["PYTHONPATH"] == str(BOOTSTRAP)
    assert child_environment(settings, {"KINETO_LOG_LEVEL": "1"})["KINETO_LOG_LEVEL"] == "1"


def result(exit_code: int, signal: int | None, *records: CaptureRecord) -> RunResult:
    return RunResult(exit_code, signal, Path("out"), records, 0)


def test_a_reason_names_the_end_of_the_script() -> None:
    nothing = CaptureRecord(pid=1, is_root=True, reason="no step was seen")
    assert result(0, None, RECORD).reason is None
    assert result(0, None).reason == "the script never imported torch"
    assert result(0, None, nothing).reason == "no step was seen"
    assert result(3, None, nothing).reason == "no step was seen (it ended with exit code 3)"
    assert result(137, 9, nothing).reason == "no step was seen (it ended with signal SIGKILL)"


def test_advice_is_for_scripts_that_did_not_fail() -> None:
    nothing = CaptureRecord(pid=1, is_root=True, reason="no step", hint="give --steps-by time")
    assert result(0, None, nothing).reason == "no step; give --steps-by time"
    assert result(2, None, nothing).reason == (
        "the script ended with exit code 2 before a step was recorded"
    )


def test_a_device_that_no_process_used_is_left_idle() -> None:
    launcher, idle, busy = (CaptureRecord(pid=1, num_launches=n) for n in (None, 0, 7))
    assert result(0, None, launcher, idle).left_device_idle
    assert not result(0, None, idle, busy).left_device_idle
    assert not result(0, None, launcher).left_device_idle


def test_importing_the_package_imports_no_torch() -> None:
    code = (
        "import sys, trnscope, trnscope.capture.run, trnscope.capture.profile, trnscope.demo;"
        "print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_a_simulated_device_is_checked_before_the_script_starts() -> None:
    settings = CaptureSettings(device="sim:trn2", lnc=1, numerics=False)
    assert settings.target is not None
    assert (settings.target.instance, settings.target.lnc) == ("trn2", 1)
    assert settings.target.numerics is False
    assert CaptureSettings().target is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"device": "cuda"},
            "no simulated device: cuda; leave --device out, devices that torch has are",
        ),
        ({"device": "sim:"}, "no simulated device: sim:"),
        (
            {"device": "sim:trn9"},
            "no simulated device: sim:trn9; give one of sim:trn1, sim:trn2, sim:trn3, sim:inf2",
        ),
        ({"device": "sim:trn2", "lnc": 3}, "no logical cores of 3"),
        ({"lnc": 2}, "add --device"),
        ({"numerics": False}, "add --device"),
    ],
)
def test_wrong_simulated_devices(options: dict[str, Any], message: str) -> None:
    with pytest.raises(TrnscopeError, match=message):
        CaptureSettings(**options)
