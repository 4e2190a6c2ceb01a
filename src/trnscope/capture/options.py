"""What to record and how much of it: the options of ``trnscope run``."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from enum import Enum
from pathlib import Path

from trnscope.capture.simulation import SimulatedTarget, parse_target
from trnscope.errors import UsageError


class StepsBy(str, Enum):
    """How the steps of a script are found."""

    AUTO = "auto"
    """By optimizer steps, else by module calls, else a window of time."""
    OPTIMIZER = "optimizer"
    """A step ends when the optimizer has stepped."""
    FORWARD = "forward"
    """A step ends when the outermost module call returns."""
    TIME = "time"
    """No steps: record from the import of torch on, for a bounded time."""


DEFAULT_STEPS = 8
DEFAULT_MAX_SECONDS = 30.0


@dataclass(frozen=True)
class CaptureSettings:
    """What a recorded process is told. Times in seconds; ``warmup`` None lets step times settle."""

    steps: int = DEFAULT_STEPS
    warmup: int | None = None
    max_seconds: float = DEFAULT_MAX_SECONDS
    steps_by: StepsBy = StepsBy.AUTO
    with_stack: bool = False
    shapes: bool = False
    memory: bool = False
    gzip: bool = False
    device: str | None = None
    """The simulated device that the script finds: ``sim:trn2``; None: what is there."""
    lnc: int | None = None
    """Physical NeuronCores for each logical one; None: the instance's default."""
    numerics: bool = True
    """Whether the simulated device computes values; without, every one is zero."""

    def __post_init__(self) -> None:
        if self.steps < 1:
            raise UsageError(f"cannot record {self.steps} steps", hint="give --steps 1 or more")
        if self.warmup is not None and self.warmup < 0:
            raise UsageError(
                f"cannot skip {self.warmup} warm-up steps", hint="give --warmup 0 or more"
            )
        if self.max_seconds <= 0:
            raise UsageError(
                f"cannot record for {self.max_seconds:g} s", hint="give more than 0 seconds"
            )
        if self.device is not None:
            parse_target(self.device, self.lnc, numerics=self.numerics)
        elif self.lnc is not None or not self.numerics:
            raise UsageError(
                "--lnc and --no-numerics are of a simulated device", hint="add --device sim:trn2"
            )

    @property
    def target(self) -> SimulatedTarget | None:
        """The simulated device, if one was asked for."""
        if self.device is None:
            return None
        return parse_target(self.device, self.lnc, numerics=self.numerics)


@dataclass(frozen=True)
class RunOptions:
    """One call of ``trnscope run``.

    ``target`` is a script, or a module's name when ``is_module``, or a program such as
    ``torchrun`` that starts Python processes. ``out`` is the folder for the traces; None
    makes ``trnscope-out/<script>-<time>``.
    """

    target: str
    args: tuple[str, ...] = ()
    is_module: bool = False
    out: Path | None = None
    capture: CaptureSettings = CaptureSettings()


@dataclass(frozen=True)
class ProcessSettings:
    """The settings, and where a process puts what it records."""

    capture: CaptureSettings
    out: Path
    claims: Path
    """A folder of this one run; a process takes a name in it before it records."""

    @property
    def run(self) -> str:
        """What tells this run from every other one: the name of its folder of claims."""
        return self.claims.name

    def to_text(self) -> str:
        """For an environment variable."""
        return json.dumps(
            {"out": str(self.out), "claims": str(self.claims), "capture": asdict(self.capture)}
        )

    @staticmethod
    def from_text(text: str) -> ProcessSettings:
        """The inverse of :meth:`to_text`."""
        document = json.loads(text)
        capture = document["capture"]
        steps_by = StepsBy(capture.pop("steps_by"))
        return ProcessSettings(
            CaptureSettings(steps_by=steps_by, **capture),
            Path(document["out"]),
            Path(document["claims"]),
        )
