"""Records a program as ``trnscope run`` does, in this process."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.doctor.plan import Plan
from benchmarks.doctor.trainer import Trainer
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
    _run(plan, ProcessSettings(settings, folder, claims))
    return sorted(str(path) for path in folder.glob("*.trace.json"))


def _run(plan: Plan, settings: ProcessSettings) -> None:
    from trnscope.capture.session import Session

    if settings.capture.target is not None:
        activate(settings.capture.target)
    session = Session(settings, is_root=True)
    session.install()
    trainer = Trainer(plan)
    for _ in range(plan.warm_up + STEPS + AFTER + 1):
        trainer.step()
    session.finish()


def diagnose(traces: list[str]) -> dict[str, object]:
    """What the doctor says of them, and how long the judged steps are."""
    import trnscope

    explanation = trnscope.open(*traces).explain()
    document = explanation.to_json()
    document["step_ns"] = explanation.step_ns
    return json.loads(json.dumps(document))  # type: ignore[no-any-return]
