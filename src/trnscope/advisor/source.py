"""From a slice to the line of the user's code that it came from, by the recorded Python frames."""

from __future__ import annotations

import re
import sys
from collections import Counter

import numpy as np

from trnscope.advisor.finding import SourceLine
from trnscope.analysis.backward import link_backward
from trnscope.analysis.memo import once_per_trace
from trnscope.model.kinds import DEVICE_WORK, SliceKind
from trnscope.store.reader import Trace

_FRAME = re.compile(r"(?P<file>[^;]+?)\((?P<line>\d+)\): (?P<function>.+)")
_FRAMEWORKS = frozenset(
    (
        "accelerate", "albumentations", "cv2", "datasets", "lightning", "numpy", "pandas", "PIL",
        "pytorch_lightning", "scipy", "skimage", "sklearn", "torchaudio", "torchvision", "tqdm",
        "transformers",
    )
)  # fmt: skip
"""Packages that a user does not edit."""
_RECORDER = re.compile(r"(^|[/\\])trnscope[/\\]capture[/\\]")
"""Our own frames around what is recorded."""
LINES_NAMED = 3
SLICES_ASKED = 200
"""The longest of the evidence; the rest adds little to which line is named first."""


def source_lines(trace: Trace, evidence: list[int]) -> tuple[SourceLine, ...] | None:
    """The user's lines behind some slices, most time first; absent where none was recorded."""
    weight: Counter[SourceLine] = Counter()
    for at in evidence[:SLICES_ASKED]:
        line = _line_of(trace, at)
        if line is not None:
            weight[line] += int(trace.slices.dur_ns[at]) + 1
    found = tuple(line for line, _ in weight.most_common(LINES_NAMED))
    return found or None


def has_stacks(trace: Trace) -> bool:
    """Whether the trace holds Python frames, or stacks of ops."""
    return trace.attribute("call_stack") is not None or _has_frames(trace)


def frames_around(trace: Trace, at: int) -> list[str]:
    """Names of the Python frames around a slice, innermost first."""
    parent, kind = trace.slices.parent, trace.slices.kind
    names = []
    while int(parent[at]) != at:
        at = int(parent[at])
        if kind[at] == SliceKind.PYTHON:
            names.append(trace.strings[int(trace.slices.name[at])])
    return names


def is_named_code(name: str) -> bool:
    """Whether a frame is worth naming: a function of the user's or of a package, not of torch or
    Python itself."""
    found = _FRAME.match(name)
    return found is not None and not _is_base(found["file"])


def short_frame(frame: str) -> str:
    """``src/train.py(47): tokenize`` → ``tokenize (train.py, line 47)``."""
    found = _FRAME.match(frame)
    if found is None:
        return frame
    file = re.split(r"[/\\]", found["file"])[-1]
    return f"{found['function']} ({file}, line {found['line']})"


def _is_library(file: str) -> bool:
    return _is_base(file) or _package(file) in _FRAMEWORKS


def _is_base(file: str) -> bool:
    if _RECORDER.search(file):
        return True
    if file.startswith("<") or "/torch/" in file or "/lib/python3" in file:
        return "site-packages" not in file or "/torch/" in file
    return _package(file) == "torch" or _package(file) in sys.stdlib_module_names


def _package(file: str) -> str:
    """The package that a file belongs to, as far as its name tells."""
    inside = file.split("site-packages/")[-1]
    return re.split(r"[/\\]", inside)[0].removesuffix(".py")


@once_per_trace
def _has_frames(trace: Trace) -> bool:
    return trace.slices.of_kind(SliceKind.PYTHON).size > 0


@once_per_trace
def _forward_of(trace: Trace) -> dict[int, int]:
    """The forward op of each backward op."""
    links = link_backward(trace)
    return dict(zip(links.backward.tolist(), links.forward.tolist(), strict=True))


def _line_of(trace: Trace, at: int) -> SourceLine | None:
    at = _on_host(trace, at)
    for place in (at, _forward_above(trace, at)):
        if place is None:
            continue
        for names in (_recorded_stack(trace, place), _with_itself(trace, place)):
            found = _users_line(names)
            if found is not None:
                return found
    return None


def _on_host(trace: Trace, at: int) -> int:
    """The launch of device work, where it is known; any other slice itself."""
    if trace.slices.kind[at] not in DEVICE_WORK:
        return at
    launches = trace.launches
    row = int(np.searchsorted(launches.device_slice, at))
    return int(launches.launch_slice[row]) if launches.has_launch[row] else at


def _with_itself(trace: Trace, at: int) -> list[str]:
    return [trace.strings[int(trace.slices.name[at])], *frames_around(trace, at)]


def _forward_above(trace: Trace, at: int) -> int | None:
    """The forward op of the backward op that a slice is, or lies in."""
    forward, parent = _forward_of(trace), trace.slices.parent
    while at not in forward and int(parent[at]) != at:
        at = int(parent[at])
    return forward.get(at)


def _recorded_stack(trace: Trace, at: int) -> list[str]:
    stacks = trace.attribute("call_stack")
    if stacks is None:
        return []
    has, text = stacks.of(np.array([at], np.uint32))
    return str(trace.strings[int(text[0])]).split(";") if has[0] else []


def _users_line(names: list[str]) -> SourceLine | None:
    for name in names:
        found = _FRAME.match(name)
        if found is not None and not _is_library(found["file"]):
            return SourceLine(found["file"], int(found["line"]))
    return None
