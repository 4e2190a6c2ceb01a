"""Runs the programs, asks the doctor, and compares what it predicts with what happens."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from benchmarks.doctor.program import FAULTS

PROGRAM = "benchmarks.doctor.program"
REPEATS = 1
STEPS = 8
OPTIONS = {"gc": ("--stack",), "heads": ("--shapes",)}
"""What a fault's rule needs recorded; the healthy twin is recorded in each of these ways."""
CAUSES = {
    "loader": ("IN02", "IN03"),
    "optimizer": ("OP02",),
    "norm": ("OP03",),
    "attention": ("OP08",),
    "activation": ("OP04",),
    "python": ("HO03",),
    "gc": ("HO04",),
    "heads": ("OP09",),
}
"""The rules that name each fault."""


@dataclass(frozen=True)
class Case:
    """One recording of one program, and what the doctor said."""

    fault: str | None
    codes: tuple[str, ...]
    """Findings with time, the first first."""
    predicted_share: float | None
    """Of the finding that names the fault."""
    range_shares: tuple[float, float] | None
    abstained: bool

    @property
    def is_top(self) -> bool:
        """Whether the first finding names the fault."""
        return bool(self.codes) and self.codes[0] in CAUSES.get(self.fault or "", ())

    @property
    def is_named(self) -> bool:
        """Whether one of the first three does."""
        return any(code in CAUSES.get(self.fault or "", ()) for code in self.codes[:3])


def record(fault: str | None, options: tuple[str, ...], folder: Path) -> Case:
    """Record one program with ``trnscope run`` and ask the doctor."""
    arguments = ["--fault", fault] if fault else []
    _trnscope(
        "run", "--steps", str(STEPS), "--out", str(folder), *options, "-m", PROGRAM, *arguments
    )
    document = json.loads(_trnscope("explain", *map(str, folder.glob("*.trace.json")), "--json"))
    timed = [one for one in document["findings"] if one["recoverable_ns_per_step"] is not None]
    named = [one for one in timed if one["code"] in CAUSES.get(fault or "", ())]
    shares = [_shares(one) for one in named[:1]]
    return Case(
        fault,
        tuple(one["code"] for one in timed),
        named[0]["share_of_step"] if named else None,
        shares[0] if shares else None,
        document["abstained"],
    )


def _shares(finding: dict[str, object]) -> tuple[float, float]:
    low, likely, high = finding["recoverable_ns_per_step"]  # type: ignore[misc]
    whole = likely / float(finding["share_of_step"])  # type: ignore[arg-type]
    return low / whole, high / whole


def realised_shares() -> dict[str, float]:
    """What removing each fault really takes off its step, as a share of it."""
    command = [sys.executable, "-m", "benchmarks.doctor.timing"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    times = json.loads(done.stdout)
    return {fault: 1.0 - times["healthy"] / times[fault] for fault in FAULTS}


def recordings(folder: Path) -> list[Case]:
    """Every fault and the healthy twin, each several times."""
    cases = []
    for repeat in range(REPEATS):
        for fault in (None, *FAULTS):
            options = OPTIONS.get(fault or "", ())
            place = folder / f"{fault or 'healthy'}-{repeat}"
            cases.append(record(fault, options, place))
            print(f"{fault or 'healthy':<11} {', '.join(cases[-1].codes) or '-'}", flush=True)
        for options in OPTIONS.values():
            place = folder / f"healthy{options[0]}-{repeat}"
            cases.append(record(None, options, place))
            print(f"healthy {options[0]} {', '.join(cases[-1].codes) or '-'}", flush=True)
    return cases


def _trnscope(*args: str) -> str:
    command = [sys.executable, "-m", "trnscope", *args]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}\n{done.stderr}")
    return done.stdout
