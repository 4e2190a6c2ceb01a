"""Runs the script in a process of its own and works out what was asked."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from trnscope.api import open as open_profile
from trnscope.errors import CaptureError
from trnscope.estimate.estimate import Estimate, Utilisation, estimate_of
from trnscope.estimate.options import EstimateOptions, MeasureSettings, Refusal
from trnscope.estimate.recorded import Recorded
from trnscope.hardware.neuroncore import load_instance
from trnscope.sim.cost import CostModel

TRACE = "timeline.pt.trace.json"


def estimate_script(options: EstimateOptions) -> Estimate:
    """Record the script's steps without values; raises :class:`CaptureError` where that fails."""
    if find_spec("torch") is None:
        raise CaptureError("estimating needs torch", hint="install it: pip install torch")
    instance = load_instance(options.instance, options.lnc)
    options.layout.check_fits(instance.name, instance.num_logical_cores, instance.lnc)
    options.out.mkdir(parents=True, exist_ok=True)
    trace = options.out / TRACE
    trace.unlink(missing_ok=True)
    recorded = _record(options, trace)
    check_used(recorded, options.script)
    return estimate_of(
        recorded, options, CostModel.for_instance(instance.name, instance.lnc), _used(trace)
    )


def check_used(recorded: Recorded, script: str) -> None:
    """Raise where the steps ran no program on the device: there is nothing to estimate."""
    if recorded.num_executions == 0:
        raise CaptureError(
            f"{script} ran nothing on the simulated device",
            hint='move the model and its data there: .to("neuron"), or '
            ".to(torch.accelerator.current_accelerator())",
        )


def _record(options: EstimateOptions, trace: Path) -> Recorded:
    settings = MeasureSettings(
        options.instance,
        options.lnc,
        options.steps,
        options.warmup,
        str(trace.resolve()),
        options.layout.tp,
    )
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "recorded.json"
        module = [sys.executable, "-m", "trnscope.estimate.measure", settings.to_text()]
        sys.stdout.flush()
        done = subprocess.run([*module, str(result), options.script, *options.args], check=False)
        refused = Refusal.read(result)
        if refused is not None:
            raise CaptureError(
                f"{options.script} cannot be split over --tp {options.layout.tp} cores: "
                f"{refused.reason}",
                hint=refused.hint,
            )
        if result.exists():
            return replace(Recorded.read(result), trace=str(trace))
    raise CaptureError(
        f"{options.script} ended with exit code {done.returncode} before a step was over",
        hint="a step ends when an optimizer has stepped, or without one when a model was called; "
        "the device is called 'neuron'",
    )


def _used(trace: Path) -> Utilisation:
    """Of the recorded steps, by the roofline of their timeline."""
    roofline = open_profile(trace).roofline()
    peaks = roofline.ceilings
    dtypes = {row.dtype for row in roofline.rows if row.is_matrix and row.flops and row.dtype}
    found = [] if peaks is None else [(d, peaks.flops(d)) for d in sorted(dtypes)]
    return Utilisation(
        roofline.matrix_flops,
        roofline.mfu_step,
        sum(step.duration_ns for step in roofline.steps),
        tuple((dtype, peak.value) for dtype, peak in found if peak is not None),
        roofline.uncounted_ns > 0,
    )
