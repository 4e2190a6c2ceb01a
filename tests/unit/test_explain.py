"""Explain: health first, one finding for one stretch of time, ranks, sources, and the text."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.unit.made_trace import MadeTrace
from tests.unit.rule_cases import CASES, MULTI, SINGLE, host
from trnscope.advisor import window
from trnscope.advisor.explain import explain
from trnscope.advisor.finding import Confidence, Finding, SourceLine
from trnscope.advisor.source import is_named_code, short_frame
from trnscope.advisor.words import about_ns, percent
from trnscope.errors import UsageError
from trnscope.model.kinds import SliceKind
from trnscope.opened import OpenedProfile
from trnscope.report.explain import explain_lines
from trnscope.report.marks import view_of


def text_of(profile: OpenedProfile) -> list[str]:
    return [line.plain for line in explain_lines(explain(profile), view_of(profile))]


def only(profile: OpenedProfile) -> Finding:
    (finding,) = explain(profile).findings
    return finding


def test_a_healthy_run_says_so(tmp_path: Path) -> None:
    result = explain(host(("aten::mm", 1000), ("aten::conv2d", 2000))(tmp_path))
    assert result.findings == result.hidden == ()
    assert not result.verdict.abstained
    assert result.verdict.text == (
        "Healthy: no known cause takes 5 % or more of a step of 3.00 ms."
    )


def test_the_specific_rule_claims_the_time_of_the_general_one(tmp_path: Path) -> None:
    # Loading takes 900 of 1900; one worker hides all of it. loader-bound would claim the same.
    finding = only(host((SINGLE, 900), ("aten::mm", 1000))(tmp_path))
    assert finding.code == "IN02"
    assert finding.recoverable is not None
    assert finding.recoverable.likely_ns == finding.recoverable.high_ns == 900_000
    assert finding.recoverable.low_ns == 720_000  # a fifth goes to taking the batches
    assert finding.share_of_step == pytest.approx(900 / 1900)
    assert finding.confidence is Confidence.HIGH
    assert finding.taken_ns == 900_000


def test_loading_longer_than_the_step_cannot_hide_whole(tmp_path: Path) -> None:
    # 8000 of loading beside 1000: four workers make a batch in 2000, of which 1000 hides.
    finding = only(host((SINGLE, 8000), ("aten::mm", 1000))(tmp_path))
    times = finding.recoverable
    assert times is not None
    assert (times.low_ns, times.likely_ns, times.high_ns) == (800_000, 7_000_000, 8_000_000)


def test_figures_add_up_to_no_more_than_the_joint_replay(tmp_path: Path) -> None:
    result = explain(host((SINGLE, 900), ("aten::mm", 1000), ("aten::_to_copy", 500))(tmp_path))
    assert [finding.code for finding in result.findings] == ["IN02", "OP07"]
    assert result.together_ns == 900_000 + 450_000  # nine tenths of the casts
    assert result.step_ns == 2_400_000


def test_a_damaged_file_carries_no_verdict(tmp_path: Path) -> None:
    profile = CASES["CA03"].fires(tmp_path)
    result = explain(profile)
    assert result.verdict.abstained and result.verdict.reason == "the file is cut off: line 3"
    assert [finding.code for finding in result.findings] == ["CA03"]
    assert result.findings[0].recoverable is None
    assert text_of(profile)[0] == "Verdict:     No verdict: the recording does not carry one."


def test_an_empty_trace_carries_no_verdict(tmp_path: Path) -> None:
    result = explain(MadeTrace(tmp_path).open())
    assert result.verdict.abstained and result.findings == ()
    assert result.verdict.reason == "the trace holds no work of a host or a device"


def test_one_step_can_be_asked_about(tmp_path: Path) -> None:
    made = MadeTrace(tmp_path)
    made.steps(2, lambda: made.op("aten::mm", 1000))
    made.step(lambda: (made.range(MULTI, 900), made.op("aten::mm", 1000)))  # type: ignore[func-returns-value,arg-type,return-value]
    profile = made.open()
    assert explain(profile, step=0).findings == ()
    (finding,) = explain(profile, step=2).findings
    assert (finding.code, finding.likely_ns) == ("IN01", 900_000)
    with pytest.raises(UsageError, match="no step 7 in the trace; trnscope steps lists them"):
        explain(profile, step=7)


def test_long_recordings_are_judged_by_their_first_steps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(window, "MOST_WORK", 7)
    made = MadeTrace(tmp_path)
    made.steps(5, lambda: [made.launch(2, host_us=50) for _ in range(3)])  # type: ignore[arg-type,return-value,func-returns-value]
    judged = window.typical_steps(made.open().traces[0])
    assert judged is not None
    assert (judged.num_steps, judged.left_out) == (2, ())


def test_of_ranks_the_worst_is_told(tmp_path: Path) -> None:
    traces = []
    for rank, us in enumerate((100, 700, 300)):
        part = host((MULTI, us + 500), ("aten::mm", 1000))(tmp_path / str(rank))
        traces.append(part.traces[0])
    result = explain(OpenedProfile(tuple(traces)))
    (finding,) = result.findings
    assert finding.trace == 1
    assert finding.likely_ns == 1_200_000
    assert finding.title.endswith("(worst on file 2, seen on 3 of 3)")
    assert result.step_ns == 2_200_000
    assert "a step of 2.20 ms" in result.verdict.text


def test_hidden_work_is_told_apart(tmp_path: Path) -> None:
    result = explain(CASES["HO01"].nearly(tmp_path))
    assert result.findings == ()
    (hidden,) = result.hidden
    assert hidden.code == "HO01"
    assert "yet no step would be shorter without it" in hidden.title
    assert result.to_json()["findings"] == []


def test_evidence_leads_to_the_users_line(tmp_path: Path) -> None:
    made = MadeTrace(tmp_path)

    def load() -> None:
        inner: Callable[[], None] = lambda: made.range(SINGLE, 900)  # noqa: E731
        made.frame("torch/utils/data/dataloader.py(700): __next__", 0, inner)

    def body() -> None:
        made.frame("train.py(12): train", 0, load)
        made.op("aten::mm", 1000)

    finding = only(made.steps(3, body).open())
    assert finding.source == (SourceLine("train.py", 12),)
    assert len(finding.evidence) == 3


def test_kernels_lead_to_the_line_that_launched_them(tmp_path: Path) -> None:
    made = MadeTrace(tmp_path)

    def forward() -> None:
        made.op("aten::mm", 5, lambda: made.launch(1000, "ampere_sgemm_128x64_nn"))

    def body() -> None:
        made.frame("model.py(30): forward", 0, forward)
        made.wait()

    finding = only(made.steps(3, body).open())
    assert finding.code == "OP05"
    assert finding.source == (SourceLine("model.py", 30),)


def test_without_stacks_the_source_is_absent_and_the_option_named(tmp_path: Path) -> None:
    profile = host((SINGLE, 900), ("aten::mm", 1000))(tmp_path)
    assert only(profile).source is None
    assert any("trnscope run --stack records it" in line for line in text_of(profile))


def test_the_first_five_lines_are_the_answer(tmp_path: Path) -> None:
    lines = text_of(host((SINGLE, 900), ("aten::mm", 1000))(tmp_path))
    assert lines[:5] == [
        "Time:        Of a step of 1.900 ms (mean of 4 steps), 52.6 % went to operators on the "
        "main thread (forward pass, loss and the like) and 47.4 % to waiting for the data loader.",
        "Top cause:   Each step waits while the main thread makes the batch (num_workers=0) [IN02]",
        "Would save:  about 900 µs of each step, 47 % of it; at least 720 µs, at most 900 µs",
        "Try first:   give the DataLoader num_workers=4 and persistent_workers=True",
        "Confidence:  high: the trace itself shows the cause and its time",
    ]


def test_the_document_is_the_contracts(tmp_path: Path) -> None:
    document = explain(host((SINGLE, 900), ("aten::mm", 1000))(tmp_path)).to_json()
    assert json.loads(json.dumps(document)) == document
    assert list(document)[:5] == ["schema", "verdict", "abstained", "reason", "findings"]
    findings = document["findings"]
    assert isinstance(findings, list)
    assert list(findings[0]) == [
        "code", "rule", "title", "recoverable_ns_per_step", "share_of_step", "confidence",
        "evidence", "source", "try", "doc",
    ]  # fmt: skip
    assert findings[0]["recoverable_ns_per_step"] == [720_000, 900_000, 900_000]


def test_a_simulated_device_is_named(tmp_path: Path) -> None:
    made = MadeTrace(tmp_path)
    stream = made.builder.stream(name="trn2 model v1", simulated=True)

    def body() -> None:
        start = made.now
        made.range(MULTI, 900)
        ids = {"correlation": made.now}
        made._add(made.thread, "nrt_execute", made.now, made.now + 5, SliceKind.RUNTIME, **ids)
        made._add(stream, "neff", made.now + 5, made.now + 100, SliceKind.KERNEL, **ids)
        made.gap(1000 - (made.now - start))
        made.op("aten::mm", 100)

    text = "\n".join(text_of(made.steps(3, body).open()))
    assert "Simulated: device times come from trn2 model v1, not from a measurement." in text


@pytest.mark.parametrize(
    ("frame", "named"),
    [
        ("train.py(3): main", True),
        ("scipy/ndimage/_interpolation.py(739): zoom", True),
        ("/venv/lib/python3.11/site-packages/mypkg/a.py(3): f", True),
        ("/venv/lib/python3.11/site-packages/torch/nn/modules/module.py(1): _call_impl", False),
        ("torch/nn/modules/module.py(1779): _call_impl", False),
        ("threading.py(1032): _bootstrap", False),
        ("<built-in function exec>", False),
        ("<frozen importlib._bootstrap>(1): _find", False),
        ("nn.Module: Linear_0", False),
    ],
)
def test_which_frames_are_worth_naming(frame: str, named: bool) -> None:
    assert is_named_code(frame) is named


def test_words() -> None:
    assert short_frame("src\\data\\text.py(47): tokenize") == "tokenize (text.py, line 47)"
    assert [about_ns(ns) for ns in (999, 1_234, 45_678, 254_930_000, 1_211_000_000)] == [
        "999 ns", "1.23 µs", "45.7 µs", "255 ms", "1.21 s",
    ]  # fmt: skip
    assert percent(0.583) == "58 %"
