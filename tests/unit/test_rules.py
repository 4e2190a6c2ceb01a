"""Every rule: registered once, documented, and held to its three traces."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.unit.made_trace import MadeTrace
from tests.unit.rule_case import SINGLE
from tests.unit.rule_cases import CASES
from tests.unit.rule_cases_host import clipping
from trnscope.advisor import rules
from trnscope.advisor.finding import Explanation
from trnscope.advisor.registry import RULES, find_rule
from trnscope.advisor.rule import SECTIONS, Rule
from trnscope.advisor.rules.fp32_matmul import REDUCED_TYPES
from trnscope.capture.record import CaptureRecord, record_path
from trnscope.errors import UsageError
from trnscope.hardware.chips import load
from trnscope.model.kinds import DeviceKind, SliceKind
from trnscope.opened import explain_profile as explain
from trnscope.report.rules import FAMILIES

FOLDER = Path(rules.__file__).parent
WITHOUT_NEEDS = {"CA01", "CA03", "CA04"}
"""Any trace holds what they need to say no."""
each_rule = pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)


def codes(result: Explanation) -> set[str]:
    return {finding.code for finding in result.findings}


def test_codes_names_and_files_are_unique() -> None:
    assert len({rule.code for rule in RULES}) == len(RULES) == len({rule.name for rule in RULES})
    written = [path for path in FOLDER.glob("*.py") if "(Rule):" in path.read_text("utf-8")]
    assert len(written) == len(RULES)
    assert {path.stem for path in written} == {rule.name.replace("-", "_") for rule in RULES}


def test_every_rule_has_three_traces() -> None:
    assert set(CASES) == {rule.code for rule in RULES}


@each_rule
def test_pages_are_whole(rule: Rule) -> None:
    page = rule.page
    assert page.headings == SECTIONS
    assert all(text.strip() for _, text in page.sections)
    assert page.summary.endswith(".") and "\n\n" not in page.summary
    assert re.fullmatch(r"[A-Z]{2}\d\d", rule.code) and rule.code[:2] in FAMILIES
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", rule.name)


@each_rule
def test_a_trace_fires_it(rule: Rule, tmp_path: Path) -> None:
    result = explain(CASES[rule.code].fires(tmp_path))
    assert rule.code in codes(result)
    finding = next(one for one in result.findings if one.code == rule.code)
    assert finding.tries and finding.how and finding.doc.endswith(f"-{rule.name}")
    times = finding.recoverable
    if times is not None:
        assert 0 <= times.low_ns <= times.likely_ns <= times.high_ns
        assert times.likely_ns >= 0.05 * (result.step_ns or 0)


@each_rule
def test_a_trace_that_nearly_fires_it_does_not(rule: Rule, tmp_path: Path) -> None:
    result = explain(CASES[rule.code].nearly(tmp_path))
    assert rule.code not in codes(result)
    assert rule.code not in {one.code for one in result.withheld}, "the data is there"


@each_rule
def test_without_its_data_it_abstains(rule: Rule, tmp_path: Path) -> None:
    result = explain(CASES[rule.code].absent(tmp_path))
    assert rule.code not in codes(result)
    if result.verdict.abstained:
        assert codes(result) <= {"CA03"} and result.verdict.reason
        return
    reasons = {one.code: one.reason for one in result.withheld}
    assert (rule.code in reasons) == (rule.code not in WITHOUT_NEEDS)


def tries(result: Explanation, code: str) -> str:
    return " ".join(next(one for one in result.findings if one.code == code).tries)


def test_what_is_compiled_for_is_the_device_of_the_trace(tmp_path: Path) -> None:
    for kind, argument in (
        (DeviceKind.NEURON, 'torch.compile(model, backend="neuron")'),
        (DeviceKind.CUDA, 'torch.compile(model, mode="reduce-overhead")'),
    ):
        made = MadeTrace(tmp_path / kind.name, kind=kind)

        def step(made: MadeTrace = made) -> None:
            for _ in range(60):
                made.op("aten::add", 20, lambda: made.launch(4))

        advice = " ".join(explain(made.steps(4, step).open()).findings[0].tries)
        assert argument in advice
        assert ("reduce-overhead" in advice) == (kind is DeviceKind.CUDA)


def test_no_more_workers_are_advised_than_there_are_processors(tmp_path: Path) -> None:
    for num_cpus, workers in ((2, 2), (64, 4)):
        profile = CASES["IN02"].fires(tmp_path / str(num_cpus))
        record = CaptureRecord(pid=1, num_cpus=num_cpus)
        record.write(record_path(Path(profile.traces[0].source.path)))
        assert f"num_workers={workers} " in tries(explain(profile), "IN02")


def test_workers_hide_no_more_than_the_processors_do(tmp_path: Path) -> None:
    # 900 µs of loading, 1,000 of the rest: two processors take at least 950 of the 1,900 for both,
    # so that all of the loading hides; one takes 1,900, and nothing does.
    saved = {}
    for num_cpus in (1, 2):
        profile = CASES["IN02"].fires(tmp_path / str(num_cpus))
        record = CaptureRecord(pid=1, num_cpus=num_cpus)
        record.write(record_path(Path(profile.traces[0].source.path)))
        found = [one.likely_ns for one in explain(profile).findings if one.code == "IN02"]
        saved[num_cpus] = found
    assert saved == {1: [], 2: [900_000]}


def test_more_workers_are_worth_their_share_of_the_wait(tmp_path: Path) -> None:
    # A step of 1,900 µs of which 900 are waits, one worker of four processors. Four make a batch
    # in 475; all work together, 1,900 and 1,000, takes at least 725; the rest takes 1,000.
    finding = explain(CASES["IN05"].fires(tmp_path)).findings[0]
    assert finding.code == "IN05" and finding.recoverable is not None
    assert finding.recoverable.likely_ns == finding.recoverable.high_ns == 900_000
    assert finding.recoverable.low_ns == 900_000, "a second one: 950, less than the rest"


def test_what_python_takes_is_not_asked_of_simulated_hosts(tmp_path: Path) -> None:
    for clock in ("virtual", "host real, device simulated"):
        made = MadeTrace(tmp_path / clock[:4])

        def step(made: MadeTrace = made) -> None:
            made.range(SINGLE, 900)
            made.op("aten::mm", 1000)

        header = {"trnscopeSimulation": json.dumps({"clock": clock})}
        result = explain(made.steps(4, step).open(metadata=header))
        reasons = {one.code: one.reason for one in result.withheld}
        is_asked = clock != "virtual"
        assert ("IN02" in codes(result)) == is_asked
        assert ("simulated" in reasons.get("IN02", "")) == (not is_asked)


def test_time_taken_counts_backward_where_the_saving_does(tmp_path: Path) -> None:
    made = MadeTrace(tmp_path)

    def step() -> None:
        for name in ("aten::pow", "aten::mean", "aten::add", "aten::rsqrt", "aten::mul"):
            made.op(name, 100, sequence_number=len(names), forward_thread=0)
            names.append(name)
        made.op("aten::linear", 1000)
        made.op("PowBackward0", 300, sequence_number=len(names) - 5, forward_thread=1)

    names: list[str] = []
    finding = explain(made.steps(4, step).open()).findings[0]
    assert (finding.code, finding.with_backward) == ("OP03", True)
    assert finding.taken_ns == 800_000


def test_a_formula_that_most_chains_are_is_named(tmp_path: Path) -> None:
    advice = tries(explain(CASES["OP04"].fires(tmp_path)), "OP04")
    assert 'torch.nn.functional.gelu(x, approximate="tanh")' in advice


def test_reads_of_the_optimizer_are_no_loop_over_elements(tmp_path: Path) -> None:
    made = MadeTrace(tmp_path)

    def update() -> None:
        for _ in range(80):
            made.op("aten::item", 20)
            made.op("aten::mul_", 20)

    def step() -> None:
        made.op("aten::mm", 1000)
        made.range("Optimizer.step#AdamW.step", 0, update)

    assert codes(explain(made.steps(4, step).open())) == {"OP02"}


def waiting_for_a_copy(folder: Path, is_linked: bool, flip_us: int) -> Explanation:
    """Behind the loader an op for the batch, 500 µs of nothing, and a copy that takes 800."""
    made = MadeTrace(folder)

    def copy() -> None:
        name = "Memcpy HtoD (Pageable -> Device)"
        if is_linked:
            made.launch(800, name, kind=SliceKind.MEMCPY, call="cudaMemcpyAsync", blocking=True)
            return
        start = made.now
        made.call("cudaMemcpyAsync", 800)
        made.builder.slice(stream, name, start * 1000, 800_000, SliceKind.MEMCPY)

    def step() -> None:
        made.range(SINGLE, 50)
        if flip_us:
            made.op("aten::flip", flip_us)
        made.gap(500)
        made.op("aten::to", 0, lambda: made.op("aten::copy_", 5, copy))
        made.op("aten::mm", 5, lambda: made.launch(2000))
        made.wait()

    stream = made.builder.stream(0, 9, name="NVIDIA A100-SXM4-80GB")
    return explain(made.steps(4, step).open())


@pytest.mark.parametrize("is_linked", [True, False])
def test_waiting_for_a_copy_prepares_no_batch(tmp_path: Path, is_linked: bool) -> None:
    nothing = waiting_for_a_copy(tmp_path / "a", is_linked, flip_us=0)
    assert "IN08" not in {one.code for one in (*nothing.findings, *nothing.hidden)}
    # Only the op on the batch counts: not the time that nothing explains, not the copy.
    flipped = waiting_for_a_copy(tmp_path / "b", is_linked, flip_us=400)
    finding = next(one for one in flipped.findings if one.code == "IN08")
    assert finding.taken_ns == 400_000
    assert finding.recoverable is not None and finding.recoverable.high_ns == 400_000


@pytest.mark.parametrize(
    ("scale", "dims", "is_clipping"),
    [
        ("aten::pow", "[[],[]]", False),
        ("aten::div", "[[], []]", False),
        ("aten::mul_", "[[512, 512], []]", True),
        ("aten::_foreach_mul_", "[[[512,512],[512]],[]]", True),
    ],
)
def test_norms_that_are_only_logged_clip_nothing(
    tmp_path: Path, scale: str, dims: str, is_clipping: bool
) -> None:
    # 40 norms and 40 other ops of 20 µs: 1,600 of a step of 3,200 µs, of which 60 % goes.
    result = explain(clipping("aten::linalg_vector_norm", 40, scale, dims)(tmp_path))
    found = {one.code: one.likely_ns for one in result.findings}
    assert found.get("HO10") == (960_000 if is_clipping else None)


@pytest.mark.parametrize("number", [12, 20])
def test_several_optimizers_count_a_norm_once(tmp_path: Path, number: int) -> None:
    made = MadeTrace(tmp_path)

    def step() -> None:
        made.op("aten::addmm", 1000)
        made.op("autograd::engine::evaluate_function: AddmmBackward0", 500)
        for _ in range(number):
            made.op("aten::linalg_vector_norm", 20)
            made.op("aten::mul_", 20)
        made.range("Optimizer.step#SGD.step", 100)
        made.range("Optimizer.step#Adam.step", 100)

    found = [one for one in explain(made.steps(4, step).open()).findings if one.code == "HO10"]
    assert [one.title for one in found] == (
        ["Gradients are clipped one at a time: 20 norms per step"] if number == 20 else []
    )


def test_a_table_counts_with_its_share_of_an_op_over_all_parameters(tmp_path: Path) -> None:
    # The table holds 3/4 of the parameters: 600 of the 800 µs of the optimizer, and the 200 of the
    # dense backward; 95 % of that goes.
    made = MadeTrace(tmp_path)
    table, other = "[30000,32]", "[32,10000]"

    def step() -> None:
        made.op("aten::embedding", 100, input_dims=f"[{table},[256],[],[],[]]")
        made.op("aten::embedding_dense_backward", 200, input_dims="[[256,32],[256],[],[],[]]")
        made.range(
            "Optimizer.step#AdamW.step",
            0,
            lambda: made.op("aten::_fused_adamw_", 800, input_dims=f"[[{table},{other}],[]]"),
        )

    finding = explain(made.steps(4, step).open()).findings[0]
    assert finding.code == "OP12"
    assert finding.likely_ns == pytest.approx(0.95 * 800_000, abs=2)


def test_gradients_are_to_be_dropped_by_name(tmp_path: Path) -> None:
    # Before PyTorch 2.0 a plain zero_grad() fills with zeros.
    advice = tries(explain(CASES["HO12"].fires(tmp_path)), "HO12")
    assert "zero_grad(set_to_none=True)" in advice


def test_attention_is_not_made_causal(tmp_path: Path) -> None:
    # A softmax and two products say nothing of the mask: an encoder's looks the same.
    advice = tries(explain(CASES["OP08"].fires(tmp_path)), "OP08")
    assert "scaled_dot_product_attention(q, k, v, attn_mask=mask)" in advice
    assert "is_causal=True only for a causal model" in advice


@pytest.mark.parametrize("dtype", REDUCED_TYPES)
def test_the_hardware_data_know_each_reduced_type(dtype: str) -> None:
    peak = load("a100-sxm4-80gb").peak(dtype)
    assert peak is not None
    assert peak.value / 19.5e12 == {"tfloat32": 8.0}.get(dtype, 16.0)


def test_rules_are_found_by_code_and_by_name() -> None:
    assert find_rule("in02") is find_rule("single-process-loading")
    with pytest.raises(UsageError, match="trnscope rule lists them"):
        find_rule("IN99")
