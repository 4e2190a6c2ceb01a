"""The cases of the corpus: every fault in every program that it is made for, and its twin."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from benchmarks.doctor import faults
from benchmarks.doctor.fault import FAULTS, Fault
from benchmarks.doctor.plan import Plan, healthy_plan

HALVES = ("tuning", "held")
SEVERITIES = ("mild", "severe")
assert faults.__all__  # the package fills the list when it is imported


@dataclass(frozen=True)
class Twin:
    """A program without a fault; several faults may share it."""

    setting: Fault | None
    """The fault whose surroundings it has; absent for the plain program."""
    model: str
    device: str
    severity: str | None

    @property
    def name(self) -> str:
        """For files and halves."""
        around = "plain" if self.setting is None else f"for-{self.setting.kind}"
        return "/".join(("healthy", around, self.model, self.severity or "any", self.device))

    @property
    def half(self) -> str:
        """Which half its findings count in."""
        return half_of(self.name)

    def plan(self) -> Plan:
        """The program."""
        plan = healthy_plan(self.model, self.device)
        if self.setting is not None and self.setting.setting is not None:
            self.setting.setting(plan, self.severity == "severe")
        return plan


@dataclass(frozen=True)
class Case:
    """A program with one fault."""

    fault: Fault
    model: str
    device: str
    severity: str

    @property
    def name(self) -> str:
        """What its half goes by."""
        return "/".join((self.fault.kind, self.model, self.severity, self.device))

    @property
    def half(self) -> str:
        """``tuning``, which may be looked at, or ``held``, which is only scored."""
        return half_of(self.name)

    @property
    def twin(self) -> Twin:
        """The program that differs from it by the fault alone."""
        if self.fault.setting is None:
            return Twin(None, self.model, self.device, None)
        return Twin(self.fault, self.model, self.device, self.severity)

    def plan(self) -> Plan:
        """The program: its twin's, with the fault put in."""
        plan = self.twin.plan()
        self.fault.change(plan, self.severity == "severe")
        return plan


def half_of(name: str) -> str:
    """Fixed by a hash of the name, so that nobody chooses."""
    return HALVES[hashlib.sha256(name.encode()).digest()[0] % 2]


def all_cases() -> list[Case]:
    """Every fault, by kind, program and severity."""
    return [
        Case(fault, model, device, severity)
        for fault in FAULTS
        for model, device in fault.programs
        for severity in SEVERITIES
    ]
