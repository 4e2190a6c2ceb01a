"""``trnscope run`` and ``trnscope demo`` from the shell: the report, the document, exit codes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="recording needs torch")

TRAINING = """
import sys
import torch
model = torch.nn.Linear(16, 16)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(12):
    optimizer.zero_grad()
    model(torch.randn(8, 16)).sum().backward()
    optimizer.step()
print("arguments", sys.argv[1:])
sys.exit(int(sys.argv[1]))
"""


def trnscope(cwd: Path, *args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "trnscope.cli.main", *args],
        cwd=cwd,
        capture_output=True,
        text=True,
        env=os.environ | {"COLUMNS": "100"},
        check=False,
    )


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "train.py"
    path.write_text(TRAINING)
    return path


def test_run_reports_where_the_steps_went(script: Path) -> None:
    done = trnscope(
        script.parent, "run", "--steps", "3", "--warmup", "2", "train.py", "0", "--steps", "x"
    )
    assert done.returncode == 0, done.stderr
    assert "arguments ['0', '--steps', 'x']" in done.stdout
    assert "3 steps, 2 to 4, each ended by the optimizer's step" in done.stdout
    assert "Each step, by what its host thread did (no device work recorded)" in done.stdout
    assert "Of a step of " in done.stdout
    assert "aten::" in done.stdout
    assert "Cost of recording: " in done.stdout
    (trace,) = script.parent.glob("trnscope-out/*/*.pt.trace.json")
    assert f"Trace: {trace.relative_to(script.parent)}" in done.stdout


def test_run_keeps_the_exit_code_and_ends_with_a_document(script: Path) -> None:
    done = trnscope(
        script.parent, "run", "--steps", "2", "--out", "traces", "--json", "train.py", "7"
    )
    assert done.returncode == 7
    document = json.loads(done.stdout.splitlines()[-1])
    assert document["schema"] == 1
    assert document["exit_code"] == 7
    assert document["signal"] is None
    assert document["reason"] is None
    (trace,) = document["traces"]
    assert Path(trace).is_file()
    assert Path(trace).parent == script.parent / "traces"
    (process,) = document["processes"]
    assert process["num_steps"] == 2
    assert document["summary"]["devices"] == []
    assert len(document["summary"]["steps"]) == 2
    assert document["breakdown"]["basis"] == "host"
    again = trnscope(script.parent, "ops", trace, "--json")
    names = {row["name"] for row in json.loads(again.stdout)["ops"]}
    assert "aten::addmm" in names


def test_run_of_a_script_without_torch_says_so(tmp_path: Path) -> None:
    (tmp_path / "plain.py").write_text("raise SystemExit(4)")
    done = trnscope(tmp_path, "run", "plain.py")
    assert done.returncode == 4
    assert done.stderr.startswith("trnscope: warning: nothing was recorded: ")
    assert "torch" in done.stderr
    assert done.stderr.count("\n") == 1


def test_run_of_nothing_is_refused_in_one_line(tmp_path: Path) -> None:
    done = trnscope(tmp_path, "run", "absent.py")
    assert done.returncode == 1
    assert done.stderr == "trnscope: error: absent.py: no such script or program; check the path\n"
    assert list(tmp_path.iterdir()) == []


def test_an_option_of_ours_after_the_script_is_the_scripts(tmp_path: Path) -> None:
    done = trnscope(tmp_path, "run", "--stpes", "3", "absent.py")
    assert done.returncode == 2
    assert "--stpes" in done.stderr


@pytest.mark.slow
def test_demo_finds_the_data_loader(tmp_path: Path) -> None:
    done = trnscope(tmp_path, "demo")
    assert done.returncode == 0, done.stderr
    sentence = next(line for line in done.stdout.splitlines() if line.startswith("Of a step of "))
    assert "went to waiting for the data loader" in sentence
