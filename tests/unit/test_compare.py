"""Two profiles side by side: values by hand, the interval in closed form, the gate."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import trnscope
from tests.unit.chrome_json import complete, kernel, write
from trnscope.analysis.compare import Comparison, TimeChange, compare, step_ratio
from trnscope.cli.main import run


def profile(
    path: Path, step_us: int, ops: dict[str, int], steps: int = 5, device: str | None = None
) -> Path:
    """Steps of one length that run the same ops, one after another; each launches a kernel."""
    events = []
    for step in range(steps):
        at = step * step_us
        events.append(complete(f"ProfilerStep#{step}", "user_annotation", at, step_us))
        for number, (name, dur_us) in enumerate(ops.items()):
            events.append(complete(name, "cpu_op", at + 1, dur_us, args={"Input Dims": [[8, 8]]}))
            if device is not None:
                where = {"correlation": step * 100 + number + 1}
                call = complete("cudaLaunchKernel", "cuda_runtime", at + 1, 1, args=where)
                events += [call, kernel(f"{name} kernel", at + 10, dur_us, **where)]
            at += dur_us + 1
    header = {} if device is None else {"deviceProperties": [{"id": 0, "name": device}]}
    return write(path, events, **header)


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    before = profile(tmp_path / "before.json", 1000, {"aten::mm": 200, "aten::relu": 50})
    after = profile(tmp_path / "after.json", 1100, {"aten::mm": 320, "aten::gelu": 30})
    return before, after


def compared(pair: tuple[Path, Path]) -> Comparison:
    return compare(*(trnscope.open(path) for path in pair))


def test_steps_ops_and_parts_by_hand(pair: tuple[Path, Path]) -> None:
    result = compared(pair)
    assert (result.before.num_steps, result.before.median_ns) == (5, 1_000_000)
    assert (result.after.mean_ns, result.after.max_ns) == (1_100_000, 1_100_000)
    assert result.ratio is not None
    assert (result.ratio.ratio, result.ratio.low, result.ratio.high) == (1.1, 1.1, 1.1)
    rows = {row.name: row for row in result.ops if row.name.startswith("aten::")}
    assert rows["aten::mm"] == TimeChange("aten::mm", None, 200_000, 320_000, 1.0, 1.0)
    assert rows["aten::relu"] == TimeChange("aten::relu", None, 50_000, None, 1.0, None)
    assert rows["aten::relu"].change_ns == -50_000
    assert rows["aten::gelu"].change_ns == 30_000
    assert [row.name for row in result.ops[:2]] == ["aten::mm", "aten::relu"]
    parts = {row.name: row for row in result.parts}
    assert sum(row.before_ns or 0 for row in parts.values()) == 1_000_000
    assert sum(row.after_ns or 0 for row in parts.values()) == 1_100_000
    assert result.on_device is False and result.kernels == () and result.differences == ()


def test_a_profile_held_against_itself_does_not_differ(pair: tuple[Path, Path]) -> None:
    result = compared((pair[0], pair[0]))
    assert result.ratio is not None and result.ratio.ratio == 1.0
    assert {row.change_ns for row in (*result.ops, *result.parts)} == {0}


def test_swapped_sides_change_every_sign(pair: tuple[Path, Path]) -> None:
    there, back = compared(pair), compared(pair[::-1])
    assert {row.name: row.change_ns for row in there.ops} == {
        row.name: -row.change_ns for row in back.ops
    }
    assert there.ratio is not None and back.ratio is not None
    assert there.ratio.ratio * back.ratio.ratio == pytest.approx(1.0)


def test_kernels_and_what_else_differs(tmp_path: Path) -> None:
    before = profile(tmp_path / "a.json", 1000, {"aten::mm": 200}, device="GPU A")
    after = profile(tmp_path / "b.json", 1000, {"aten::mm": 100}, device="GPU B")
    host = profile(tmp_path / "c.json", 1000, {"aten::mm": 100})
    result = compared((before, after))
    assert result.on_device is True
    assert result.kernels == (TimeChange("aten::mm kernel", "kernel", 200_000, 100_000, 1.0, 1.0),)
    assert [(one.what, one.before, one.after) for one in result.differences] == [
        ("devices", "GPU A", "GPU B")
    ]
    across = compared((before, host))
    assert across.on_device is False and across.parts == ()
    assert [one.what for one in across.differences] == ["devices"]
    assert across.differences[0].after == "the host alone"


def test_without_steps_on_a_side_sums_are_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stepped = profile(tmp_path / "a.json", 1000, {"aten::mm": 200})
    bare = tmp_path / "b.json"
    events = json.loads(stepped.read_text("utf-8"))["traceEvents"]
    write(bare, [event for event in events if event["cat"] == "cpu_op"])
    result = compared((stepped, bare))
    assert result.per_step is False and result.ratio is None and result.parts == ()
    rows = {row.name: row for row in result.ops}
    assert rows["aten::mm"] == TimeChange("aten::mm", None, 1_000_000, 1_000_000, 5.0, 5.0)
    assert run(["compare", str(stepped), str(bare)]) == 0
    out = capsys.readouterr().out
    assert "sums over the whole profiles" in out and "per step" not in out


def test_other_shapes_are_named(tmp_path: Path) -> None:
    before = profile(tmp_path / "a.json", 1000, {"aten::mm": 200})
    after = tmp_path / "b.json"
    after.write_text(before.read_text("utf-8").replace("[[8, 8]]", "[[16, 8]]"), "utf-8")
    (one,) = compared((before, after)).differences
    assert (one.what, one.before, one.after) == (
        "shapes",
        "aten::mm [[8, 8]]",
        "aten::mm [[16, 8]]",
    )


durations = st.lists(st.integers(1, 10**9), min_size=5, max_size=20)


@given(durations, durations, st.integers(2, 1000))
def test_the_interval_holds_the_ratio_and_scales(
    before: list[int], after: list[int], factor: int
) -> None:
    one = step_ratio(np.array(before), np.array(after))
    scaled = step_ratio(np.array(before), np.array(after) * factor)
    assert one is not None and scaled is not None
    assert one.low is not None and one.high is not None
    assert one.low <= one.high
    assert min(after) / max(before) <= one.low and one.high <= max(after) / min(before)
    assert scaled.ratio == pytest.approx(factor * one.ratio)
    assert scaled.low == pytest.approx(factor * one.low)


def test_the_interval_covers_the_truth_as_often_as_it_says() -> None:
    random = np.random.default_rng(7)
    trials, held = 200, 0
    for _ in range(trials):
        before = random.normal(1000, 50, 30).astype(np.int64)
        after = random.normal(1100, 50, 30).astype(np.int64)
        found = step_ratio(before, after)
        assert found is not None and found.low is not None and found.high is not None
        held += found.low <= 1.1 <= found.high
    # 95 % of 200 are 190, with a standard deviation of 3; the bootstrap of medians is a bit off.
    assert 178 <= held <= 200


def test_few_steps_carry_no_interval_and_none_no_ratio() -> None:
    found = step_ratio(np.array([10, 20, 30]), np.array([40, 40, 40]))
    assert found is not None and (found.ratio, found.low, found.high) == (2.0, None, None)
    assert step_ratio(np.array([], np.int64), np.array([1])) is None


@pytest.mark.parametrize(("allowed", "code"), [("3%", 3), ("9.5", 3), ("11 %", 0)])
def test_the_gate(
    pair: tuple[Path, Path], allowed: str, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["compare", *map(str, pair), "--fail-if-slower", allowed]) == code
    captured = capsys.readouterr()
    assert "10.0 % longer" in captured.out
    assert ("the gate fails" in captured.err) is (code == 3)


def test_the_gate_does_not_judge_too_few_steps(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    two = str(profile(tmp_path / "two.json", 1000, {"aten::mm": 200}, steps=2))
    assert run(["compare", two, two, "--fail-if-slower", "3%"]) == 1
    assert "too few steps" in capsys.readouterr().err


@pytest.mark.parametrize("allowed", ["much", "-3%", "nan", "inf"])
def test_a_limit_that_is_none_is_one_line(
    pair: tuple[Path, Path], allowed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["compare", *map(str, pair), f"--fail-if-slower={allowed}"]) == 1
    assert capsys.readouterr().err.count("\n") == 1


def test_the_document_is_that_of_python(
    pair: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["compare", *map(str, pair), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    result = trnscope.open(pair[0]).compare(trnscope.open(pair[1]))
    assert document == json.loads(json.dumps(result.to_json()))
    assert document["ops"][0]["change_ns"] == 120_000
