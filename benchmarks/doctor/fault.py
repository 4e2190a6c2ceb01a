"""What a fault is, and the list of all of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.doctor.plan import Plan

Change = Callable[[Plan, bool], None]
"""Changes a plan; true where the fault is severe."""


@dataclass(frozen=True)
class Fault:
    """A thing that people do, in the programs in which it makes sense."""

    kind: str
    family: str
    """What it has to do with, for the page."""
    codes: tuple[str, ...]
    """The rules that name it."""
    change: Change
    """Puts the fault in."""
    setting: Change | None
    """Changes both twins: what the fault needs around it."""
    programs: tuple[tuple[str, str], ...]
    """Model and device of each."""
    clock: str
    """``cpu`` or ``wall``: what its cost is measured by on the CPU."""
    apart: bool
    """Whether its programs cannot take turns step by step, because they go on meanwhile."""
    costs: bool
    """Whether it takes time from each step; else it is one of the recording."""


FAULTS: list[Fault] = []
CPU_MODELS = ("convnet", "transformer", "recommender", "rnn")
SIM_MODELS = ("convnet", "transformer", "recommender")


def fault(
    kind: str,
    family: str,
    *codes: str,
    cpu: tuple[str, ...] = (),
    sim: tuple[str, ...] = (),
    setting: Change | None = None,
    clock: str = "cpu",
    apart: bool = False,
    costs: bool = True,
) -> Callable[[Change], Change]:
    """Add a function that changes a plan to the list of faults."""
    programs = tuple((model, "cpu") for model in cpu) + tuple((model, "neuron") for model in sim)

    def register(change: Change) -> Change:
        FAULTS.append(Fault(kind, family, codes, change, setting, programs, clock, apart, costs))
        return change

    return register


def each_or_half(severe: bool, layer: int) -> bool:
    """Severe faults are in every layer, mild ones in every second."""
    return severe or layer % 2 == 0
