"""What a rule is: a cause that it can name, and the manual page that is its docstring."""

from __future__ import annotations

import inspect
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar

from trnscope.advisor.context import StepContext
from trnscope.advisor.finding import Confidence
from trnscope.advisor.removal import Removal
from trnscope.model.intervals import Intervals
from trnscope.store.tables import U32

SECTIONS = (
    "What it finds",
    "Why it costs time",
    "How it is computed",
    "When it is wrong",
    "Example",
    "What to try",
    "References",
)
"""The headings of every rule's page, in order."""
_HEADING = re.compile(r"^(?P<title>[A-Z][a-z ]+)\n-+$", re.MULTILINE)


class Need(Enum):
    """What a trace must hold for a rule to be asked. The value says why it was not."""

    HOST_OPS = "no ops of the host were recorded; record ProfilerActivity.CPU"
    DEVICE_WORK = "no device work was recorded"
    LAUNCHES = "no device work has its launch in the trace"
    COLLECTIVES = "no communication on a device was recorded"
    MESSAGES = "sizes of messages were not recorded; newer versions of PyTorch record them"
    SHAPES = "input shapes were not recorded; record with trnscope run --shapes"
    STACKS = "Python stacks were not recorded; record with trnscope run --stack"
    NEURON = "the trace is of no NeuronCore"
    ENGINES = "no engines or DMA queues were recorded; record ProfileMode.DEVICE of a NeuronCore"
    GRIDS = "no grid sizes of kernels are in the trace"
    MODEL_CALLS = (
        "nothing shows where the model is called: neither Python stacks nor work of a device; "
        "record with trnscope run --stack"
    )
    REAL_HOST = (
        "the host's times are simulated: what Python and data loaders take is not in them; record "
        "on the CPU or on a real device"
    )
    CAPTURE_RECORD = "no .capture.json of trnscope run lies beside the trace"
    STEPS = "no steps were found; call prof.step() once a step, or record with trnscope run"


NOT_EVERY_PROGRAM = frozenset(
    (Need.DEVICE_WORK, Need.LAUNCHES, Need.COLLECTIVES, Need.NEURON, Need.ENGINES, Need.GRIDS)
)
"""What many programs do not have: a rule that needs it has nothing to look at, and its silence
leaves nothing open."""


@dataclass(frozen=True, eq=False, repr=False)
class Claim:
    """That some time is due to a rule's cause. The replay says what it would give back."""

    title: str
    """One line for somebody who never profiled."""
    evidence: U32
    """The slices that show it."""
    likely: Removal | None
    """What goes if the cause does; absent where the time is given, or there is none."""
    confidence: Confidence
    tries: tuple[str, ...]
    how: str
    """How the time is computed: what the replay leaves out, and which share of it."""
    low: Removal | None = None
    """What goes at the least; absent: as likely."""
    high: Removal | None = None
    """What goes at the most; absent: as likely."""
    direct_ns: tuple[int, int, int] | None = None
    """Low, likely and high per step, where the replay cannot tell them."""
    direct_time: Intervals | None = None
    """The time that ``direct_ns`` is a part of; absent: the host time of ``likely``."""
    direct_of_judged: bool = False
    """Whether ``direct_ns`` is per judged step; else per recorded step, those that stand out
    counted too."""
    with_backward: bool = False
    """Whether what is removed counts the backward of the evidence too."""
    is_fault: bool = False
    """Whether the recording is at fault, which costs no step any time."""


class Rule(ABC):
    """One cause of lost time. A subclass's docstring is its manual page.

    ``specificity`` orders rules: what a specific one explains, a general one does not claim.
    """

    code: ClassVar[str]
    """Family and number: ``IN01``."""
    name: ClassVar[str]
    """Kebab-case; states the problem."""
    subject: ClassVar[str]
    """What takes the time, for a sentence that says it costs none."""
    needs: ClassVar[tuple[Need, ...]] = ()
    specificity: ClassVar[int] = 1

    @abstractmethod
    def check(self, context: StepContext) -> Iterator[Claim]:
        """What the trace shows of this cause; nothing where it does not."""

    @property
    def page(self) -> RulePage:
        """The manual page."""
        return read_page(type(self))

    @property
    def doc(self) -> str:
        """Where the page is, in the documentation."""
        return f"docs/reference/rules.md#{self.code.lower()}-{self.name}"


@dataclass(frozen=True)
class RulePage:
    """A rule's docstring, taken apart."""

    code: str
    name: str
    summary: str
    sections: tuple[tuple[str, str], ...]
    """Heading and text, in order."""

    @property
    def headings(self) -> tuple[str, ...]:
        """The headings, in order."""
        return tuple(title for title, _ in self.sections)


def read_page(rule: type[Rule]) -> RulePage:
    """Take a rule's docstring apart at its underlined headings."""
    text = inspect.cleandoc(rule.__doc__ or "")
    found = list(_HEADING.finditer(text))
    ends = [heading.start() for heading in found[1:]] + [len(text)]
    sections = tuple(
        (heading["title"], text[heading.end() : end].strip())
        for heading, end in zip(found, ends, strict=True)
    )
    summary = text[: found[0].start()].strip() if found else text
    return RulePage(rule.code, rule.name, summary, sections)
