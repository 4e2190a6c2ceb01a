"""The corpus's arithmetic: halves, scores and damage, on results made up by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("torch")

from benchmarks.doctor.case import all_cases, half_of
from benchmarks.doctor.damage import DAMAGES, all_damaged, is_careful
from benchmarks.doctor.page import page
from benchmarks.doctor.score import Careful, Healthy, Judged, Said, Score, median_error, score


def judged(
    said: list[tuple[str, int]], *, codes: tuple[str, ...] = ("OP03",), healthy_ns: int = 60
) -> Judged:
    """A program of 100 ns a step, recorded at 200 ns."""
    findings = tuple(
        Said(code, likely // 2, likely, 2 * likely, likely / 200) for code, likely in said
    )
    return Judged("name", "norm", "cpu", codes, True, findings, 100, healthy_ns)


def test_what_is_predicted_is_a_share_of_the_step_without_a_profiler() -> None:
    # 60 of the 200 recorded ns are 30 of 100; 40 came back: a quarter too little.
    one = judged([("OP03", 60)])
    assert one.realised_ns == 40
    assert one.predicted_ns == (15, 30, 60)
    assert one.error == pytest.approx(0.25)
    assert one.is_covered


def test_first_and_among_three() -> None:
    second = judged([("HO02", 90), ("OP03", 60)])
    assert not second.is_first
    assert second.is_among(3)
    fourth = judged([("A", 9), ("B", 8), ("C", 7), ("OP03", 6)])
    assert not fourth.is_among(3)
    assert fourth.named is not None


def test_another_rule_for_the_same_fault_counts() -> None:
    assert judged([("IN02", 50)], codes=("IN03", "IN02")).is_first


def test_a_fault_of_the_recording_is_ranked_among_its_like() -> None:
    said = (Said("OP03", 1, 2, 3, 0.5), Said("CO01", None, None, None, None))
    one = Judged("name", "compiling", "cpu", ("CO01",), False, said, None, None)
    assert one.is_first
    assert one.matters
    assert one.error is None


def test_small_faults_are_counted_apart() -> None:
    # 4 of 100 ns: less than the 5 % of which the doctor speaks.
    small = judged([], healthy_ns=96)
    found = score([judged([("OP03", 60)]), small], [], [])
    assert found.small == (small,)
    assert (found.first, len(found.judged)) == (1, 1)


def four_programs() -> Score:
    cases = [
        judged([("OP03", 60)]),
        judged([("HO02", 60), ("OP03", 20)]),
        judged([("HO02", 60)]),
    ]
    healthy = [Healthy("h", ("HO02",)), Healthy("i", ())]
    return score(cases, healthy, [Careful("d", True), Careful("e", False)])


def test_precision_and_recall() -> None:
    rules = {rule.code: rule for rule in four_programs().rules()}
    # HO02 came first in two faulty programs and a healthy one, never rightly.
    assert (rules["HO02"].first, rules["HO02"].first_rightly) == (3, 0)
    assert (rules["OP03"].first, rules["OP03"].first_rightly) == (1, 1)
    assert (rules["OP03"].faults, rules["OP03"].named) == (3, 2)


def test_confusion_alarms_and_care() -> None:
    found = four_programs()
    assert dict(found.confusion()["norm"]) == {"OP03": 1, "HO02": 2}
    assert [one.name for one in found.alarms] == ["h"]
    assert (found.careful, len(found.damaged)) == (1, 2)
    # 30 for 40, 10 for 40.
    assert median_error(found.errors()) == pytest.approx(0.5)
    assert found.covered == (1, 2)


def test_the_page_says_what_falls_short() -> None:
    text = page(four_programs(), "held", ["broken"])
    assert "| the first finding names the fault | 1 of 3 (33 %) | at least 90 % |" in text
    assert "**Short of its aim:** the first finding, the first three, false alarms" in text
    assert "Programs that did not run: broken." in text


def test_names_are_unique_and_both_halves_are_there() -> None:
    names = [case.name for case in all_cases()]
    assert len(set(names)) == len(names)
    assert {half_of(name) for name in names} == {"tuning", "held"}


def test_at_least_thirty_kinds_in_three_programs_each() -> None:
    programs: dict[str, set[tuple[str, str]]] = {}
    for case in all_cases():
        programs.setdefault(case.fault.kind, set()).add((case.model, case.device))
    assert len([kind for kind, known in programs.items() if len(known) >= 3]) >= 30


def test_a_half_is_a_function_of_the_name() -> None:
    # sha256("a") begins with 0xca, that of "b" with 0x3e: both even.
    assert half_of("a") == half_of("b") == "tuning"
    # sha256("d") begins with 0x18, that of "e" with 0x3f.
    assert half_of("e") == "held"


def trace() -> str:
    events = [
        {"name": "ProfilerStep#1", "cat": "user_annotation", "ts": 1},
        {"name": "aten::mm", "cat": "cpu_op", "ts": 2},
        {"name": "kernel", "cat": "kernel", "ts": 3},
    ]
    return json.dumps({"traceEvents": events})


@pytest.mark.parametrize(
    ("kind", "device", "left"),
    [
        ("without-steps", "cpu", ["aten::mm", "kernel"]),
        ("without-device", "neuron", ["ProfilerStep#1", "aten::mm"]),
        ("without-ops", "cpu", ["ProfilerStep#1", "kernel"]),
    ],
)
def test_damage_takes_out_its_part(kind: str, device: str, left: list[str]) -> None:
    damage = next(one for one in DAMAGES if (one.kind, one.device) == (kind, device))
    events = json.loads(damage.harm(trace(), True))["traceEvents"]
    assert [event["name"] for event in events] == left


def test_a_cut_file_ends_early(tmp_path: Path) -> None:
    path = tmp_path / "whole.json"
    path.write_text("x" * 100)
    cut = [one for one in all_damaged() if one.damage.kind == "cut-off"]
    sizes = {one.severity: len(one.write(path, tmp_path / "d").read_text()) for one in cut}
    assert sizes == {"mild": 90, "severe": 40}


def test_care_is_abstaining_or_naming_the_lack() -> None:
    healthy, few = "Healthy: no known cause", "Nothing found, but only 4 of 44 rules could be asked"
    found = [{"code": "OP03"}]
    assert is_careful({"findings": [], "abstained": True, "verdict": "No verdict"})
    assert is_careful({"findings": [{"code": "CA01"}], "abstained": False, "verdict": healthy})
    assert is_careful({"findings": [], "abstained": False, "verdict": few})
    assert not is_careful({"findings": [], "abstained": False, "verdict": healthy})
    assert not is_careful({"findings": found, "abstained": False, "verdict": "slow norm"})
