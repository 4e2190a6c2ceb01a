"""The demo: a training script that wastes time in a way people do, to be profiled as it is."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from trnscope.capture.options import RunOptions
from trnscope.capture.run import RunResult, run_script
from trnscope.errors import CaptureError


def demo_script_path() -> Path:
    """The training script; it knows nothing of trnscope."""
    return Path(__file__).with_name("train_transformer.py")


def run_demo(out: Path | None = None, args: tuple[str, ...] = ()) -> RunResult:
    """Train the demo's transformer and record a few of its steps, as ``trnscope run`` would."""
    if find_spec("torch") is None:
        raise CaptureError("the demo needs torch", hint="install it: pip install torch")
    return run_script(RunOptions(str(demo_script_path()), args, out=out))
