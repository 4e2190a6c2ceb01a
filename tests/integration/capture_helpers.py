"""Runs a script as it is and under ``run_script``, in processes of their own, and compares."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trnscope.capture.record import CaptureRecord

TRAIN = """
import sys, torch
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
def train(num_steps):
    for step in range(num_steps):
        loss = model(torch.randn(8, 16)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(step, loss.item())
"""

# The runner is a process of its own, as the command line's is: what the script prints passes
# through it, and it writes its result to a file.
RUNNER = """
import json, sys
from pathlib import Path
from trnscope.capture.options import CaptureSettings, RunOptions, StepsBy
from trnscope.capture.run import run_script
from trnscope.errors import TrnscopeError
call = json.loads(sys.argv[1])
settings = call["settings"]
if "steps_by" in settings:
    settings["steps_by"] = StepsBy(settings["steps_by"])
out = None if call["out"] is None else Path(call["out"])
options = RunOptions(
    call["target"], tuple(call["args"]), call["is_module"], out, CaptureSettings(**settings)
)
result = run_script(options)
Path(call["result"]).write_text(json.dumps({
    "exit_code": result.exit_code, "signal": result.signal, "out": str(result.out),
    "reason": result.reason, "records": [record.to_json() for record in result.records],
}))
"""


@dataclass(frozen=True)
class Recorded:
    """What a run under the recorder gave."""

    stdout: str
    stderr: str
    exit_code: int
    signal: int | None
    reason: str | None
    out: Path
    records: tuple[CaptureRecord, ...]

    @property
    def traces(self) -> list[Path]:
        """The trace files."""
        return [record.trace for record in self.records if record.trace is not None]

    @property
    def record(self) -> CaptureRecord:
        """The only record."""
        assert len(self.records) == 1, self
        return self.records[0]


def start(
    folder: Path,
    target: str,
    *args: str,
    is_module: bool = False,
    out: Path | None = None,
    **settings: Any,
) -> subprocess.Popen[str]:
    """Start a run whose working folder is ``folder``."""
    call = {
        "target": target,
        "args": args,
        "is_module": is_module,
        "out": None if out is None else str(out),
        "settings": settings,
        "result": str(folder / "result.json"),
    }
    return subprocess.Popen(
        [sys.executable, "-c", RUNNER, json.dumps(call)],
        cwd=folder,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(folder: Path, runner: subprocess.Popen[str], stdin: str = "") -> Recorded:
    """Wait for a run to end."""
    stdout, stderr = runner.communicate(stdin, timeout=300)
    assert runner.returncode == 0, stderr
    result = json.loads((folder / "result.json").read_text())
    out = Path(result["out"])
    records = tuple(CaptureRecord.from_json(record, out) for record in result["records"])
    return Recorded(
        stdout, stderr, result["exit_code"], result["signal"], result["reason"], out, records
    )


def record(folder: Path, code: str, *args: str, stdin: str = "", **settings: Any) -> Recorded:
    """Write ``code`` to ``folder/script.py`` and run it under the recorder."""
    (folder / "script.py").write_text(code)
    return finish(folder, start(folder, "script.py", *args, **settings), stdin)


def plain(
    folder: Path, *command: str, stdin: str = "", **env: str
) -> subprocess.CompletedProcess[str]:
    """Run a Python command line by itself."""
    return subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        env={**os.environ, "OMP_NUM_THREADS": "1", **env},
        input=stdin,
        capture_output=True,
        text=True,
        timeout=300,
    )


def events(trace: Path | None) -> list[dict[str, Any]]:
    """The events of a trace file, read by Python's own parser."""
    assert trace is not None
    opener = gzip.open if trace.suffix == ".gz" else open
    with opener(trace, "rt", encoding="utf-8") as file:
        document = json.load(file)
    return list(document["traceEvents"])


def steps(trace: Path | None) -> list[str]:
    """The names of the whole ``ProfilerStep`` annotations, in order of time."""
    found = [
        event
        for event in events(trace)
        if event.get("name", "").startswith("ProfilerStep#") and event["args"].get("finished", True)
    ]
    return [event["name"] for event in sorted(found, key=lambda event: float(event["ts"]))]


def numbered(first: int, count: int) -> list[str]:
    """The names that ``count`` steps from number ``first`` have."""
    return [f"ProfilerStep#{number}" for number in range(first, first + count)]
