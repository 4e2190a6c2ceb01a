"""Damaged captures, on which the doctor has to abstain or to say what it cannot know."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.doctor.case import SEVERITIES, half_of

Event = dict[str, Any]
DEVICE_CATEGORIES = ("kernel", "gpu_memcpy", "gpu_memset")
HOST_CATEGORIES = ("cpu_op", "privateuse1_runtime", "privateuse1_driver")


@dataclass(frozen=True)
class Damage:
    """One way in which a capture goes wrong."""

    kind: str
    device: str
    """Of which program a capture is damaged."""
    harm: Callable[[str, bool], str]
    """The file's text, damaged; true where severely."""

    def names(self) -> list[tuple[str, str]]:
        """Name and severity of each case."""
        return [(f"{self.kind}/transformer/{one}/{self.device}", one) for one in SEVERITIES]


def _cut(text: str, severe: bool) -> str:
    return text[: int(len(text) * (0.4 if severe else 0.9))]


def _without(wanted: Callable[[Event, bool], bool]) -> Callable[[str, bool], str]:
    def harm(text: str, severe: bool) -> str:
        document = json.loads(text)
        events = document["traceEvents"]
        document["traceEvents"] = [one for one in events if not wanted(one, severe)]
        return json.dumps(document)

    return harm


def _chance(event: Event) -> float:
    """The same number between 0 and 1 each time for an event."""
    key = f"{event.get('name')}{event.get('ts')}".encode()
    return hashlib.sha256(key).digest()[0] / 256.0


def _is_device(event: Event, severe: bool) -> bool:
    share = 1.0 if severe else 0.7
    return event.get("cat") in DEVICE_CATEGORIES and _chance(event) < share


def _is_host(event: Event, severe: bool) -> bool:
    share = 1.0 if severe else 0.7
    return event.get("cat") in HOST_CATEGORIES and _chance(event) < share


def _is_step(event: Event, severe: bool) -> bool:
    if severe:
        return str(event.get("cat")).endswith("user_annotation")
    return str(event.get("name", "")).startswith(("ProfilerStep#", "Optimizer."))


DAMAGES = (
    Damage("cut-off", "cpu", _cut),
    Damage("cut-off", "neuron", _cut),
    Damage("without-steps", "cpu", _without(_is_step)),
    Damage("without-steps", "neuron", _without(_is_step)),
    Damage("without-device", "neuron", _without(_is_device)),
    Damage("without-host", "neuron", _without(_is_host)),
    Damage("without-ops", "cpu", _without(lambda event, _: event.get("cat") == "cpu_op")),
)


@dataclass(frozen=True)
class Damaged:
    """One damaged capture."""

    damage: Damage
    name: str
    severity: str

    @property
    def half(self) -> str:
        """As for cases."""
        return half_of(self.name)

    def write(self, trace: Path, folder: Path) -> Path:
        """A damaged copy of a trace."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / "damaged.pt.trace.json"
        path.write_text(self.damage.harm(trace.read_text(), self.severity == "severe"))
        return path


def all_damaged() -> list[Damaged]:
    """Every damage, twice."""
    return [
        Damaged(damage, name, severity) for damage in DAMAGES for name, severity in damage.names()
    ]


def is_careful(document: dict[str, Any]) -> bool:
    """Whether the doctor abstained, named what the capture lacks, or withheld most of its rules:
    then it says that nothing was found among the few, and calls nothing healthy."""
    codes = {one["code"] for one in document["findings"]}
    is_withheld = not codes and not document["verdict"].startswith("Healthy")
    return bool(document["abstained"]) or bool(codes & {"CA01", "CA03"}) or is_withheld
