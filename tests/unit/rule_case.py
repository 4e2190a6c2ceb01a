"""What a rule is tested with: three traces, and the plainest of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.unit.made_trace import MadeTrace
from trnscope.model.kinds import SliceKind
from trnscope.opened import OpenedProfile

Case = Callable[[Path], OpenedProfile]
SINGLE = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
MULTI = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"


@dataclass(frozen=True)
class RuleCases:
    """Three traces for one rule."""

    fires: Case
    nearly: Case
    absent: Case


def host(*calls: tuple[str, int], steps: int = 4) -> Case:
    """Steps of ops (or ranges, where the name says so) one after another, µs each."""

    def make(folder: Path) -> OpenedProfile:
        made = MadeTrace(folder)

        def body() -> None:
            for name, us in calls:
                (made.range if name.startswith("enumerate") else made.op)(name, us)

        return made.steps(steps, body).open()

    return make


def steps(write: Callable[[MadeTrace], None], number: int = 4) -> Case:
    """Steps of which each is written by ``write``."""

    def make(folder: Path) -> OpenedProfile:
        made = MadeTrace(folder)
        return made.steps(number, lambda: write(made)).open()

    return make


def nothing(folder: Path) -> OpenedProfile:
    """Device work without anything of the host."""
    made = MadeTrace(folder)
    stream = made.builder.stream()
    made.builder.slice(stream, "kernel", 0, 1000, SliceKind.KERNEL)
    return made.open()


CPU_ONLY = host(("aten::mm", 1000))
