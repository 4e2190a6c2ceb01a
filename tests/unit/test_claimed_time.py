"""One finding for one stretch of time, also where a rule gives the figures itself."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.unit.made_trace import MadeTrace
from tests.unit.rule_cases import CASES, MULTI
from tests.unit.rule_cases_device import (
    instructions,
    spilling,
    tables,
    throttling,
    transfers,
)
from trnscope.advisor.claimed_time import ClaimedTime
from trnscope.advisor.explain import explain
from trnscope.advisor.finding import Explanation, Finding
from trnscope.advisor.recording import Recording
from trnscope.model.intervals import Intervals
from trnscope.opened import OpenedProfile
from trnscope.report.explain import explain_lines
from trnscope.report.marks import view_of

LOADER = "torch/utils/data/dataloader.py"
MODULE = "torch/nn/modules/module.py"


def between(*ends: tuple[int, int]) -> Intervals:
    start, end = np.array(ends, np.int64).T
    return Intervals.union_of(start, end)


def timed(result: Explanation) -> list[Finding]:
    return [one for one in result.findings if one.recoverable is not None]


def likely(result: Explanation) -> dict[str, int]:
    return {one.code: one.likely_ns for one in timed(result)}


def rarely(folder: Path, evaluate_us: int, *, save_us: int = 1500) -> Explanation:
    """Eight steps of 1000 µs, of which two evaluate the model with a new loader and save it."""
    made = MadeTrace(folder)

    def evaluate() -> None:
        made.frame(f"{MODULE}(3000): eval", 10)
        made.frame(f"{LOADER}(1606): _shutdown_workers", 300)
        start = lambda: made.frame("multiprocessing/process.py(110): start", 600)  # noqa: E731
        made.frame(f"{LOADER}(1101): __init__", 100, start)
        made.op("aten::mm", evaluate_us)
        made.frame("torch/serialization.py(944): save", save_us)
        made.frame(f"{MODULE}(2980): train", 5)

    def step(also: bool) -> None:
        made.op("aten::mm", 1000)
        if also:
            evaluate()

    for number in range(8):
        made.step(lambda: step(number in (2, 5)))  # noqa: B023
    return explain(made.open())


def saving(folder: Path) -> OpenedProfile:
    """Eight steps of 1000 µs and 500 of casts, of which two save for 10 ms."""
    made = MadeTrace(folder)

    def step(also: bool) -> None:
        made.op("aten::mm", 1000)
        made.op("aten::_to_copy", 500)
        if also:
            made.frame("torch/serialization.py(944): save", 10_000)

    for number in range(8):
        made.step(lambda: step(number < 2))  # noqa: B023
    return made.open()


def test_shares_of_time_add_up() -> None:
    claimed = ClaimedTime().plus(between((0, 100)), 0.6)
    assert claimed.free_share(between((50, 150))) == pytest.approx(0.7)  # 50 free, 20 of 50
    claimed = claimed.plus(between((50, 150)), 0.5)
    # 0 to 50: 0.6; 50 to 100: 0.6 and half of the rest, 0.8; 100 to 150: 0.5.
    assert claimed.free_share(between((0, 150))) == pytest.approx(1 - (30 + 40 + 25) / 150)
    assert claimed.free_share(between((200, 300))) == 1.0
    assert claimed.free_share(Intervals.empty()) == 1.0


def test_what_an_evaluation_holds_is_claimed_once(tmp_path: Path) -> None:
    # An evaluation takes 10 + 1000 (workers) + 500 + 1500 (saving) = 3010 µs, of which 2500 have
    # another cause. The mean step: (8 * 1000 + 2 * 3015) / 8.
    result = rarely(tmp_path, 500)
    assert likely(result) == {
        "HO08": 337_500,  # 90 % of 2 * 1500 / 8
        "IN06": 225_000,  # 90 % of 2 * 1000 / 8
    }
    assert result.step_ns == 1_000_000, "the steps that evaluate stand out"
    assert {one.step_ns for one in timed(result)} == {1_753_750}
    assert result.together_ns == 337_500 + 225_000


def test_the_rest_of_an_evaluation_is_its_own(tmp_path: Path) -> None:
    # Of 5510 µs 2500 have another cause: 80 % of 2 * 3010 / 8 is left.
    result = rarely(tmp_path, 3000)
    assert likely(result) == {"HO09": 602_000, "HO08": 337_500, "IN06": 225_000}
    evaluating = result.findings[0].recoverable
    assert evaluating is not None
    assert (evaluating.low_ns, evaluating.high_ns) == (376_250, 752_500)
    assert result.together_ns == 602_000 + 337_500 + 225_000


def test_rare_work_is_compared_with_the_mean_of_all_steps(tmp_path: Path) -> None:
    # Saving: 90 % of 2 * 10,000 / 8; a recorded step takes (8 * 1500 + 20,000) / 8. Nine tenths of
    # the casts go as well.
    profile = saving(tmp_path)
    result = explain(profile)
    assert result.step_ns == 1_500_000
    assert likely(result) == {"HO08": 2_250_000, "OP07": 450_000}
    saved, casts = timed(result)
    assert saved.share_of_step == pytest.approx(2_250 / 4_000)
    assert casts.share_of_step == pytest.approx(450 / 1_500)
    assert result.verdict.text.endswith(
        "without that, a recorded step, 4.00 ms on average, would be about 2.25 ms shorter."
    )
    assert result.together_ns == 2_700_000
    text = "\n".join(line.plain for line in explain_lines(result, view_of(profile)))
    assert "about 2.25 ms of each recorded step (4.00 ms on average), 56 % of it" in text
    assert "All of them together: about 2.70 ms of each recorded step (4.00 ms on av" in text
    assert "about 450 µs of each step, 30 % of it" in text


def test_waits_for_batches_are_compared_with_the_judged_steps(tmp_path: Path) -> None:
    # The last step takes 12,000 µs; in the others a second worker hides 900 of 1,900 µs.
    made = MadeTrace(tmp_path)

    def step() -> None:
        made.range(MULTI, 900)
        made.op("aten::mm", 1000)

    made.steps(7, step)
    made.step(lambda: made.op("aten::mm", 12_000))
    profile = made.open()
    recording = Recording(num_cpus=4, num_workers=1)
    result = explain(profile, recordings=(recording,))
    assert likely(result) == {"IN05": 900_000}
    (waits,) = timed(result)
    assert waits.share_of_step == pytest.approx(900 / 1_900)
    assert "a step of 1.90 ms would be about 900 µs shorter" in result.verdict.text
    assert result.together_ns == 900_000


def test_transfers_are_of_spills_or_of_other_data(tmp_path: Path) -> None:
    # For 5 of 10 µs only transfers run. Spills are half of the traffic: 60 % of 2.5 µs; of the
    # other half 40 % go. Where they are 60 % of it, the rest is no finding of its own.
    half = explain(spilling(500)(tmp_path / "half"))
    assert likely(half) == {"NE09": 1_500, "NE08": 1_000}
    assert half.together_ns == 2_500
    most = explain(spilling(600)(tmp_path / "most"))
    assert likely(most) == {"NE09": 1_800}
    assert most.together_ns == 1_800


def test_small_transfers_leave_the_others_whole(tmp_path: Path) -> None:
    # 10 µs: a small transfer runs from 1,000 to 3,000, a quick one from 5,000 to 9,000.
    rows = [*transfers(16 << 10, 2_000), *transfers(4 << 20, 4_000)]
    rows[0] |= {"start_ts": 1_000, "end_ts": 3_000}
    rows[1] |= {"start_ts": 5_000, "end_ts": 9_000, "id": 4}
    profile = tables(Instruction=instructions("vector", 1_000), DmaPacketAggregated=rows)(tmp_path)
    lost = (1 - 128 / 2440) * 2_000
    assert likely(explain(profile)) == {
        "NE08": 1_600,
        "NE06": pytest.approx(0.8 * lost, rel=0.001),
    }


@pytest.mark.parametrize(("ns", "saved"), [(1_100, []), (1_300, [520])])
def test_throttling_is_worth_five_percent_too(tmp_path: Path, ns: int, saved: list[int]) -> None:
    found = likely(explain(throttling(ns)(tmp_path)))
    assert [one for code, one in found.items() if code == "NE10"] == saved


def test_hidden_spills_are_no_cause(tmp_path: Path) -> None:
    figures = {"spill_save_bytes": 500, "spill_reload_bytes": 500, "hbm_read_bytes": 1000,
               "hbm_write_bytes": 1000, "mfu_estimated_percent": 0.1}  # fmt: skip
    result = explain(
        tables(
            Instruction=instructions("tensor", 9_900),
            DmaPacketAggregated=transfers(1 << 20, 5_000),
            Summary=[figures],
        )(tmp_path)
    )
    assert likely(result) == {}
    assert "shorter" not in result.verdict.text
    assert [one.code for one in result.hidden] == ["NE09"]
    assert result.together_ns is None


@pytest.mark.parametrize("code", sorted(CASES))
def test_figures_fit_into_a_step(tmp_path: Path, code: str) -> None:
    result = explain(CASES[code].fires(tmp_path))
    found = timed(result)
    for one in found:
        assert one.likely_ns >= 0.05 * one.step_ns > 0
    if found:
        longest = max(one.step_ns for one in found)
        assert result.together_ns is not None
        assert max(one.likely_ns for one in found) <= result.together_ns <= longest
        assert sum(one.likely_ns for one in found) <= longest
