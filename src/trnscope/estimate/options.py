"""What is asked: a script, an instance, a layout."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from trnscope.errors import UsageError
from trnscope.estimate.layout import ONE_CORE, Layout


@dataclass(frozen=True)
class MeasureSettings:
    """What the process that runs the script is told."""

    instance: str
    lnc: int | None
    steps: int
    warmup: int
    trace: str
    """The file to write the timeline to."""
    tp: int = 1
    """Cores over which the script's layers are split."""

    def to_text(self) -> str:
        """For a command line."""
        return json.dumps(asdict(self))

    @staticmethod
    def from_text(text: str) -> MeasureSettings:
        """The inverse of :meth:`to_text`."""
        return MeasureSettings(**json.loads(text))


@dataclass(frozen=True)
class Refusal:
    """Why a script cannot be split over cores, as the process that ran it says."""

    reason: str
    hint: str

    def write(self, result: Path) -> None:
        """Beside where the result would be."""
        result.with_suffix(".refused").write_text(json.dumps(asdict(self)), encoding="utf-8")

    @staticmethod
    def read(result: Path) -> Refusal | None:
        """None where the script was not refused."""
        file = result.with_suffix(".refused")
        return Refusal(**json.loads(file.read_text(encoding="utf-8"))) if file.exists() else None


@dataclass(frozen=True)
class EstimateOptions:
    """One call of ``trnscope estimate``."""

    script: str
    args: tuple[str, ...] = ()
    instance: str = "trn2.48xlarge"
    lnc: int | None = None
    """Physical cores in a logical one; None: the instance's default."""
    layout: Layout = ONE_CORE
    steps: int = 1
    warmup: int = 1
    tokens: int | None = None
    """Per step and core; None: by the shape of the model's first argument."""
    samples: int | None = None
    out: Path = Path("trnscope-out/estimate")

    def __post_init__(self) -> None:
        if not Path(self.script).is_file():
            raise UsageError(f"{self.script}: no such script", hint="check the path")
