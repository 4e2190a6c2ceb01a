"""docs/doctor.md, from a score."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Sequence

import torch

from benchmarks.doctor.fault import FAULTS
from benchmarks.doctor.record import STEPS
from benchmarks.doctor.score import Judged, Score, median_error
from benchmarks.doctor.timing import QUARTILE
from benchmarks.doctor.timing import STEPS as TIMED

HEAD = """# How often is the doctor right?

Written by `make bench-doctor`. It trains small models with one fault at a time, records each with
the recorder of `trnscope run`, on the CPU and on a simulated Trainium, and asks `trnscope explain`.
The *healthy twin* of a program differs from it by the fault alone (`benchmarks/doctor/faults`).

There are {kinds} kinds of fault, {programs} faulty programs, each kind mild and severe. A hash of
its name puts each program into one of two halves. Rules and thresholds were worked on with the
tuning half. **This page is about the {half} half**{note}.{part}
"""
HELD_NOTE = ", of which nobody looked at single cases before the score was made"
PART = " Only its programs {place} were run this time; the others are not in any figure below."
AIMS = (0.90, 0.97, 0.03, 1.0, 0.25)


def page(score: Score, half: str, failed: Sequence[str], device: str | None = None) -> str:
    """The whole page; ``device``: the only one whose programs were run."""
    head = HEAD.format(
        part="" if device is None else PART.format(place=_place(device)),
        kinds=len({fault.kind for fault in FAULTS}),
        programs=sum(2 * len(fault.programs) for fault in FAULTS),
        half=half,
        note=HELD_NOTE if half == "held" else "",
    )
    parts = [
        head,
        "\n".join(_figures(score)),
        "\n".join(_short(score)),
        "\n".join(_faults(score)),
        "\n".join(_rules(score)),
        "\n".join(_confusion(score)),
        "\n".join(_alarms(score)),
        "\n".join(_method(score, failed)),
    ]
    return "\n\n".join(part.strip("\n") for part in parts if part) + "\n"


def _figures(score: Score) -> list[str]:
    covered, figures = score.covered
    count = len(score.judged)
    lines = [
        "| | found | aim |",
        "|---|---|---|",
        f"| the first finding names the fault | {_of(score.first, count)} | at least 90 % |",
        f"| one of the first three does | {_of(score.among_three, count)} | at least 97 % |",
        f"| healthy programs with a finding | {_of(len(score.alarms), len(score.healthy))} "
        "| at most 3 % |",
        f"| damaged captures: abstained, or named what lacks | "
        f"{_of(score.careful, len(score.damaged))} | 100 % |",
        f"| median error of the likely milliseconds | {_error(score.errors())} | at most 25 % |",
    ]
    lines += [
        f"| the same, {_place(device)} | {_error(score.errors(device))} | |"
        for device in ("neuron", "cpu")
    ]
    return [*lines, f"| what came back lies between low and high | {_of(covered, figures)} | |"]


def _short(score: Score) -> list[str]:
    """What falls short, in words."""
    error = median_error(score.errors())
    found = (
        score.first / max(len(score.judged), 1),
        score.among_three / max(len(score.judged), 1),
        len(score.alarms) / max(len(score.healthy), 1),
        score.careful / max(len(score.damaged), 1),
        1.0 if error is None else error,
    )
    words = (
        "the first finding",
        "the first three",
        "false alarms",
        "damaged captures",
        "the error",
    )
    is_low = (True, True, False, True, False)
    short = [
        word
        for word, one, aim, low in zip(words, found, AIMS, is_low, strict=True)
        if (one < aim if low else one > aim)
    ]
    if not short:
        return ["All aims are met."]
    return [f"**Short of its aim:** {', '.join(short)}."]


def _faults(score: Score) -> list[str]:
    lines = [
        "## By kind of fault",
        "",
        "| Fault | family | programs | first | in three | likely | came back | error |",
        "|---|---|--:|--:|--:|--:|--:|--:|",
    ]
    for fault in FAULTS:
        mine = [one for one in score.judged if one.kind == fault.kind]
        if mine:
            lines.append(_fault_row(fault.kind, fault.family, mine))
    return lines


def _fault_row(kind: str, family: str, mine: list[Judged]) -> str:
    first, three = sum(one.is_first for one in mine), sum(one.is_among(3) for one in mine)
    errors = [one.error for one in mine if one.error is not None]
    likely = _mean(one.predicted_ns[1] / one.faulty_ns for one in mine
                   if one.predicted_ns and one.faulty_ns)  # fmt: skip
    came_back = _mean(one.realised_ns / one.faulty_ns for one in mine
                      if one.realised_ns is not None and one.faulty_ns)  # fmt: skip
    cells = [kind, family, str(len(mine)), str(first), str(three), likely, came_back]
    return f"| {' | '.join([*cells, _error(errors)])} |"


def _rules(score: Score) -> list[str]:
    lines = [
        "## By rule",
        "*Precision*: of the times that it came first, over faulty and healthy programs, those in "
        "which it was right. *Recall*: of the faults that it is there for, those that it, or "
        "another rule for the same fault, named in the first three findings.",
        "",
        "| Rule | precision | recall |",
        "|---|--:|--:|",
    ]
    for rule in score.rules():
        right = _of(rule.first_rightly, rule.first)
        lines.append(f"| {rule.code} | {right} | {_of(rule.named, rule.faults)} |")
    return lines


def _confusion(score: Score) -> list[str]:
    lines = ["## What came first", "", "| Fault | rules that came first |", "|---|---|"]
    for kind, firsts in sorted(score.confusion().items()):
        said = ", ".join(f"{code} {count}" for code, count in firsts.most_common())
        lines.append(f"| {kind} | {said} |")
    return lines


def _alarms(score: Score) -> list[str]:
    alarms = [f"- `{one.name}`: {', '.join(one.codes)}" for one in score.alarms]
    careless = [f"- `{one.name}`" for one in score.damaged if not one.is_careful]
    lines = ["## Findings on healthy programs", *(alarms or ["None."])]
    return [*lines, "", "## Damaged captures with a verdict", *(careless or ["None."])]


def _method(score: Score, failed: Sequence[str]) -> list[str]:
    small = len(score.small)
    named = sum(bool(one.ranked) for one in score.small)
    return [
        "## How it was measured",
        f"- Recordings of {STEPS} steps, in processes forked from one that has imported torch.",
        "- *Came back*: the healthy twin's step taken from the faulty one's. On the simulated "
        "device both are virtual times of the recordings, the same on every machine. On the CPU "
        f"both programs take turns without a profiler for {TIMED} steps, in CPU time (wall time "
        f"where the fault makes the program wait); the {QUARTILE}th percentile is compared, as "
        "other programs may run on the machine.",
        "- *Likely*: the finding's likely share of the recorded step, times the step without a "
        "profiler. *Error*: likely over came back, minus one, without its sign; the median.",
        f"- A fault counts where it takes at least 5 % of the step, as the doctor is silent below "
        f"that. {small} faulty programs of this half took less; {named} of them had a finding.",
        f"- Programs that did not run: {', '.join(failed) if failed else 'none'}.",
        f"- {os.cpu_count()} cores ({platform.machine()}), torch {torch.__version__}.",
    ]


def _of(part: int, whole: int) -> str:
    return f"{part} of {whole} ({100 * part / whole:.0f} %)" if whole else "none"


def _error(errors: Sequence[float]) -> str:
    found = median_error(errors)
    return "-" if found is None else f"{100 * found:.0f} %"


def _mean(shares: Iterable[float]) -> str:
    known = list(shares)
    return f"{100 * sum(known) / len(known):.0f} %" if known else "-"


def _place(device: str) -> str:
    return "on the simulated device" if device == "neuron" else "on the CPU"
