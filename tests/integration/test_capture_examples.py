"""The example programs about recording, and the demo, run as their pages say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.integration.capture_helpers import events, finish, numbered, plain, start, steps
from trnscope.demo import demo_script_path

pytest.importorskip("torch")

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def test_a_part_of_a_program(tmp_path: Path) -> None:
    done = plain(tmp_path, str(EXAMPLES / "record_part_of_a_program.py"))
    assert done.returncode == 0, done.stderr
    first, *rows = done.stdout.splitlines()
    trace = tmp_path / first.removeprefix("trace: ")
    assert steps(trace) == numbered(4, 3)
    calls = {row.split()[4]: int(row.split()[2]) for row in rows if "aten::" in row}
    counted = {name: sum(event.get("name") == name for event in events(trace)) for name in calls}
    assert (len(rows), len(calls) >= 3) == (5, True)
    assert calls == counted


@pytest.mark.slow
def test_a_script_from_python(tmp_path: Path) -> None:
    (tmp_path / "short.py").write_text("import torch\nraise SystemExit(2)\n")
    done = plain(tmp_path, str(EXAMPLES / "record_a_script.py"), "short.py")
    assert done.returncode == 2
    assert done.stdout.startswith("nothing was recorded: the script ended with exit code 2")
    done = plain(tmp_path, str(EXAMPLES / "record_a_script.py"))
    assert done.returncode == 0, done.stderr
    assert re.search(r"json: 4 steps, by optimizer\na recorded step took [+-]\d+ %", done.stdout)


@pytest.mark.slow
def test_the_demo_wastes_its_time_on_the_data_loader(tmp_path: Path) -> None:
    recorded = finish(tmp_path, start(tmp_path, str(demo_script_path()), "--steps", "20"))
    bare = plain(tmp_path, str(demo_script_path()), "--steps", "20")
    assert recorded.stdout == bare.stdout
    assert recorded.record.num_steps == 8

    def total(trace: Path, name: str) -> float:
        found = (event for event in events(trace) if event.get("name", "").startswith(name))
        return sum(float(event["dur"]) for event in found)

    (trace,) = recorded.traces
    assert total(trace, "enumerate(DataLoader)") > 0.4 * total(trace, "ProfilerStep#")
    remedied = finish(
        tmp_path, start(tmp_path, str(demo_script_path()), "--steps", "20", "--pretokenized")
    )
    assert remedied.stdout == bare.stdout
    (trace,) = remedied.traces
    assert total(trace, "enumerate(DataLoader)") < 0.1 * total(trace, "ProfilerStep#")
