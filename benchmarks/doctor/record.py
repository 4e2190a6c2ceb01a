"""Records a program as ``trnscope run`` does, in this process."""

from __future__ import annotations

import json
import os
import traceback
from pathlib import Path

import torch
import torch.distributed

from benchmarks.doctor.plan import Plan
from benchmarks.doctor.trainer import Trainer
from trnscope.analysis.step_finder import find_steps
from trnscope.capture.options import CaptureSettings, ProcessSettings
from trnscope.capture.simulation import activate

STEPS = 8
"""Recorded."""
AFTER = 7
"""Steps after these, which tell what recording costs."""


def record(plan: Plan, folder: Path) -> list[str]:
    """The traces that come of it."""
    settings = CaptureSettings(
        steps=STEPS,
        warmup=plan.warm_up,
        with_stack="stack" in plan.options,
        shapes="shapes" in plan.options,
        device="sim:trn2" if plan.simulated else None,
        numerics=not plan.simulated,
    )
    folder.mkdir(parents=True, exist_ok=True)
    claims = folder / ".run-1"
    claims.mkdir(exist_ok=True)
    _run_ranks(plan, ProcessSettings(settings, folder, claims))
    return sorted(str(path) for path in folder.glob("*.trace.json"))


def _run_ranks(plan: Plan, settings: ProcessSettings) -> None:
    """All ranks of a program, each in a process of its own; the first is this one."""
    children = []
    for rank in range(1, plan.ranks):
        pid = os.fork()
        if pid == 0:
            os._exit(_as_rank(rank, plan, settings))
        children.append(pid)
    if plan.ranks > 1:
        _set_rank(0, plan, settings)
    _run(plan, settings)
    for pid in children:
        _, status = os.waitpid(pid, 0)
        if status:
            raise RuntimeError(f"a rank ended with {status}")


def _as_rank(rank: int, plan: Plan, settings: ProcessSettings) -> int:
    try:
        _set_rank(rank, plan, settings)
        _run(plan, settings)
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


def _set_rank(rank: int, plan: Plan, settings: ProcessSettings) -> None:
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(plan.ranks))
    os.environ["DOCTOR_STORE"] = str(settings.out / "store")


def _join() -> None:
    torch.distributed.init_process_group(
        "neuron",
        init_method=f"file://{os.environ['DOCTOR_STORE']}",
        rank=int(os.environ["RANK"]),
        world_size=int(os.environ["WORLD_SIZE"]),
    )
    torch.neuron.set_device(int(os.environ["RANK"]))


def _run(plan: Plan, settings: ProcessSettings) -> None:
    from trnscope.capture.session import Session

    if settings.capture.target is not None:
        activate(settings.capture.target)
    session = Session(settings, is_root=True)
    session.install()
    if plan.ranks > 1:
        _join()
    trainer = Trainer(plan)
    for _ in range(plan.warm_up + STEPS + AFTER + 1):
        trainer.step()
    session.finish()


def diagnose(traces: list[str]) -> dict[str, object]:
    """What the doctor says of them, and how long the judged and all steps are."""
    import trnscope

    profile = trnscope.open(*traces)
    explanation = profile.explain()
    document = explanation.to_json()
    document["step_ns"] = explanation.step_ns
    steps = [step.duration_ns for step in find_steps(profile.traces[0]).steps]
    document["all_steps_ns"] = sum(steps) // len(steps) if steps else None
    return json.loads(json.dumps(document))  # type: ignore[no-any-return]
