"""What was recorded of a script: written by the process that ran it, read by the one that asks."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from trnscope.estimate.memory import MemoryPoint
from trnscope.sim.signature import CollectiveKind


@dataclass(frozen=True)
class Unit:
    """Parameters that are gathered and reduced together: a layer, or what is outside of layers."""

    name: str
    parameter_bytes: int
    gradient_bytes: int = 0


@dataclass(frozen=True)
class OptimizerWork:
    """An execution of the optimizer's step. Times in ns."""

    host_ns: int
    fixed_ns: int
    device_ns: int
    count: int = 1


@dataclass(frozen=True)
class TensorCollective:
    """What the cores of a tensor parallel group exchange, so many times in all steps."""

    kind: CollectiveKind
    num_bytes: int
    count: int


@dataclass(frozen=True)
class Batch:
    """What the model was given in a step, by the shape of its first argument."""

    model: str
    shape: tuple[int, ...]
    num_calls: int
    samples: int
    tokens: int | None
    """None: the argument is no matrix of token numbers."""


@dataclass(frozen=True)
class Recorded:
    """Whole steps on one core; times of all steps together, in virtual ns."""

    hardware_model: str
    instance: str
    lnc: int
    capacity_bytes: int
    """HBM of one logical core."""
    num_steps: int
    first_step: int
    """Counted from 0."""
    steps_by: str
    """``optimizer`` or ``forward``: what ended a step."""
    duration_ns: int
    """From a quiet device to a quiet device; the compiler's time is not in it."""
    parts_ns: dict[str, int]
    """They add up to ``duration_ns``."""
    optimizer_parts_ns: dict[str, int]
    """Of ``optimizer_ns``, likewise; what is left of it is the host's."""
    backward_ns: int
    optimizer_ns: int
    num_executions: int
    """Programs that ran, copies not counted."""
    num_on_cpu: int
    """Ops that the device lacks."""
    num_programs: int
    """Different ones."""
    compile_ns: int
    """Time of the compiler for them, one after the other."""
    optimizer_work: tuple[OptimizerWork, ...]
    memory: tuple[MemoryPoint, ...]
    """The moments that can be the peak."""
    units: tuple[Unit, ...]
    batch: Batch | None
    num_cores_used: int
    trace: str | None = None
    tp: int = 1
    """Cores over which the layers were split; the step is that of one of them."""
    tensor_collectives: tuple[TensorCollective, ...] = ()

    def write(self, path: Path) -> None:
        """As JSON."""
        path.write_text(json.dumps(asdict(self)), encoding="utf-8")

    @staticmethod
    def read(path: Path) -> Recorded:
        """The inverse of :meth:`write`."""
        document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        batch = document.pop("batch")
        return Recorded(
            optimizer_work=tuple(OptimizerWork(**row) for row in document.pop("optimizer_work")),
            memory=tuple(MemoryPoint(**row) for row in document.pop("memory")),
            units=tuple(Unit(**row) for row in document.pop("units")),
            tensor_collectives=tuple(
                TensorCollective(**row) for row in document.pop("tensor_collectives")
            ),
            batch=None if batch is None else Batch(**{**batch, "shape": tuple(batch["shape"])}),
            **document,
        )
