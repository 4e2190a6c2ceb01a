"""The comparison of the cost model with a table of measurements, on rows made for the test."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from benchmarks import sim_accuracy
from benchmarks.accuracy import op_lists
from benchmarks.accuracy.compare import NO_WORKLOAD, Compared, Comparison, compare
from benchmarks.accuracy.expressions import ExpressionError, evaluate
from benchmarks.accuracy.measured import read
from benchmarks.accuracy.page import page
from benchmarks.accuracy.predict import predict
from benchmarks.accuracy.summary import block_error, bounds, errors, text
from benchmarks.accuracy.workloads import left_out_rules, load
from trnscope.hardware import chips
from trnscope.sim.cost import CostModel
from trnscope.sim.signature import OpSignature, TensorSpec

CSV = """id,workload,shape,dtype,hardware,mode,metric,value,unit,tier
1,copy,8 tiles,bytes,trn1,kernel,time,15.0,us,A
2,matmul,2048,bf16,trn2,device,time,100,us,A
3,mystery,1,bf16,trn2,device,time,1,us,A
4,serving,1,bf16,trn2,device,time,1,us,A
5,matmul,2048,bf16,trn2,device,latency_upper_bound,200,us,B
6,matmul,2048,bf16,trn2,device,no_such_metric,200,us,B
"""
WORKLOADS = """
[[workload]]
name = "eight loads"
block = "fully specified kernels"
mode = "program"
instance = "trn1.2xlarge"
ids = [1]
tiles = [{ name = "x", bytes = 4096, buffers = 8 }]
steps = [{ loop = "n", body = [{ load = "x", bytes = "128*4096", run = 4096 }] }]
sizes = { n = 8 }

[[workload]]
name = "product"
block = "forwards, batch 1"
mode = "device"
instance = "trn2.3xlarge"
match = { workload = "mat*", metric = "time" }
fitted = true
sizes = { M = 2048 }
sections = [{ ops = "product" }]

[[workload]]
name = "product, bound"
block = "upper bounds"
mode = "device"
instance = "trn2.3xlarge"
ids = [5, 6]
sizes = { M = 2048 }
sections = [{ ops = "product" }]

[ops]
product = '''
a : M, M bfloat16
b : M, M bfloat16
c = mm(a, b) : M, M bfloat16
'''

[[left_out]]
ids = [4]
reason = "serving"
"""


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    table, workloads = tmp_path / "rows.csv", tmp_path / "work.toml"
    table.write_text(CSV, encoding="utf-8")
    workloads.write_text(WORKLOADS, encoding="utf-8")
    return table, workloads


@pytest.fixture
def comparison(files: tuple[Path, Path]) -> Comparison:
    table, workloads = files
    return compare(read(table), load(workloads), left_out_rules(workloads))


def test_unseen_rows_are_compared_or_left_out_with_a_reason(comparison: Comparison) -> None:
    assert {row.row_id for row in comparison.compared} == {1, 2, 5}
    reasons = {left.row.id: left.reason for left in comparison.left_out}
    assert reasons == {3: NO_WORKLOAD, 4: "serving", 6: "no figure for no_such_metric"}


def test_a_program_is_predicted_by_its_schedule(comparison: Comparison) -> None:
    loads = next(row for row in comparison.compared if row.row_id == 1)
    core = CostModel.for_instance("trn1.2xlarge").core
    data = 8 * 128 * 4096 / core.dma_bytes_per_ns
    latency = core.dma.trigger_ns + core.dma.completion_ns
    assert loads.predicted == pytest.approx((data + latency) / 1e3, rel=0.01)
    assert loads.error == pytest.approx(loads.predicted / 15 - 1)


def test_blocks_tell_held_out_rows_from_fitted_ones(comparison: Comparison) -> None:
    blocks = {block.name: block for block in errors(comparison)}
    assert blocks["fully specified kernels"].num_held_out == 1
    assert blocks["forwards, batch 1"].held_out is None
    assert block_error("x", comparison.block("upper bounds")).num_rows == 1
    assert bounds(comparison) == (1, 1)


def test_the_text_and_the_page_name_every_block(comparison: Comparison) -> None:
    shown = text(comparison)
    assert "3 rows compared, 3 left out" in shown
    written = page(comparison, "1")
    assert "## Fully specified kernels" in written
    assert "| 1 | copy 8 tiles | time | 15 |" in written


def test_a_missing_table_is_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["sim_accuracy", "--measured", "nowhere.csv"])
    assert sim_accuracy.main() == 1
    printed = capsys.readouterr().err
    assert printed.count("\n") == 1
    assert "nowhere.csv: no such file; name the table with --measured" in printed


@pytest.mark.parametrize(
    ("expression", "value"), [("B*S", 6), ("ceil(K, 128)", 2), ("max(1, S-7)", 1), (12, 12)]
)
def test_expressions(expression: str | int, value: int) -> None:
    assert evaluate(expression, {"B": 2, "S": 3, "K": 129}) == value


@pytest.mark.parametrize("expression", ["__import__('os')", "X", "1 +", "[1]"])
def test_expressions_are_arithmetic_only(expression: str) -> None:
    with pytest.raises(ExpressionError):
        evaluate(expression, {})


def test_an_op_list_names_shapes_types_and_layouts() -> None:
    ops = op_lists.parse(
        """
        q : B, 64 T
        w : 64, 32 bf16 @t     # a weight
        y = mm(q, w) : B, 32 float32
        v, i = topk(y) {k=2} : B, 2 float32 ; B, 2 int64
        """,
        {"B": 8},
        "bfloat16",
    )
    product, top = op_lists.signatures(ops)
    weight = TensorSpec((64, 32), "bfloat16", (1, 64))
    assert product == OpSignature(
        "aten::mm",
        (TensorSpec((8, 64), "bfloat16"), weight),
        (TensorSpec((8, 32), "float32"),),
    )
    assert top.attributes == (("k", 2),)
    assert top.outputs[1] == TensorSpec((8, 2), "int64")


def test_repeated_sections_carry_a_value_and_share_another() -> None:
    text_of = """
    h : 4 float32
    $m : 4 float32
    a = add(h, $m) : 4 float32
    """
    layer = op_lists.Section(op_lists.parse(text_of, {}, "float32"), 3, "h")
    graph = op_lists.graph("g", (layer,))
    assert len(graph.nodes) == 3
    assert graph.nodes[1].inputs[0] == graph.nodes[0].outputs[0]
    assert len({node.inputs[1] for node in graph.nodes}) == 1
    assert graph.outputs == graph.nodes[2].outputs


def test_a_missing_value_of_an_op_list_is_named() -> None:
    ops = op_lists.parse("y = mm(q, w) : 8, 32 float32", {}, "float32")
    with pytest.raises(op_lists.OpListError, match="'q' is neither declared nor made"):
        op_lists.signatures(ops)


def test_the_projects_own_workloads_parse() -> None:
    found = load(sim_accuracy.WORKLOADS)
    assert len(found) > 150
    for workload in found:
        CostModel.for_instance(workload.instance, workload.lnc)
        if workload.mode == "program":
            assert workload.program().steps


def test_repeated_ops_count_their_bytes_engines_and_flops_as_often(tmp_path: Path) -> None:
    workloads = tmp_path / "work.toml"
    once, thrice = (
        f"""
[[workload]]
name = "product, {repeat}"
block = "other graphs"
mode = "op"
instance = "trn2.3xlarge"
ids = [1]
sizes = {{ M = 512 }}
sections = [{{ ops = "product", repeat = {repeat} }}, {{ ops = "product" }}]
"""
        for repeat in (1, 5)
    )
    lists = WORKLOADS[WORKLOADS.index("[ops]") : WORKLOADS.index("[[left_out]]")]
    workloads.write_text(once + thrice + lists, encoding="utf-8")
    two, six = (predict(workload) for workload in load(workloads))
    assert six.flops == 3 * two.flops
    assert six.read_bytes == 3 * two.read_bytes > 0
    assert six.write_bytes == 3 * two.write_bytes > 0
    assert six.engine_ns == {name: 3 * busy for name, busy in two.engine_ns.items()}


SOURCE_ROWS = re.compile(r"\brows? (\d+(?:-\d+)?(?:(?:, | and )\d+(?:-\d+)?)*)")


def _rows_named(text_of: str) -> set[int]:
    named: set[int] = set()
    for group in SOURCE_ROWS.findall(text_of):
        for first, last in re.findall(r"(\d+)(?:-(\d+))?", group):
            named.update(range(int(first), int(last or first) + 1))
    return named


def test_row_numbers_are_read_out_of_a_source() -> None:
    assert _rows_named("fitted on rows 1, 3-5 and 7: 9 ms") == {1, 3, 4, 5, 7}
    assert _rows_named("row 12 (tier C), 30 us") == {12}


def test_a_row_that_decided_a_constant_is_marked_fitted() -> None:
    data = Path(chips.__file__).parent / "data"
    files = [data / f"{chip}.toml" for chip in ("trn1", "trn2", "trn3", "inf2")]
    files += sorted((data / "neuron").glob("*.toml"))
    named = {row for file in files for row in _rows_named(file.read_text(encoding="utf-8"))}
    assert {74, 112, 460, 464, 480} <= named
    used = load(sim_accuracy.WORKLOADS)
    wrong = {row for workload in used if not workload.fitted for row in workload.ids} & named
    assert not wrong


def test_a_goal_is_judged_on_all_rows_and_on_held_out_ones() -> None:
    def row(error: float, fitted: bool) -> Compared:
        return Compared("x", "collectives", 100, 100 + error, "us", "time", "A", fitted)

    block = block_error("collectives", [row(0, True), row(0, True), row(15, False)])
    assert (block.is_met, block.is_met_held_out) == (True, False)
    written = page(Comparison((row(0, True), row(0, True), row(15, False)), ()), "1")
    assert "- collectives: 15.0% on 1 held-out rows, the goal is 10.0%." in written
    assert "| 10.0% | yes | **no** |" in written
    assert block_error("other", [row(0, True)]).is_met_held_out is None


def test_a_ratio_with_a_fitted_half_is_not_held_out(tmp_path: Path) -> None:
    table, workloads = tmp_path / "rows.csv", tmp_path / "work.toml"
    table.write_text(CSV, encoding="utf-8")
    entries = [
        f"""
[[workload]]
name = "{mode}"
block = "other graphs"
mode = "{mode}"
instance = "trn2.3xlarge"
ids = [{number}]
pair = "product"
fitted = {fitted}
sizes = {{ M = 512 }}
sections = [{{ ops = "product" }}]
"""
        for mode, number, fitted in (("eager", 2, "true"), ("compiled", 3, "false"))
    ]
    lists = WORKLOADS[WORKLOADS.index("[ops]") : WORKLOADS.index("[[left_out]]")]
    workloads.write_text("".join(entries) + lists, encoding="utf-8")
    ratio = compare(read(table), load(workloads), []).block("eager/compiled ratios")
    assert [row.fitted for row in ratio] == [True]


BAD_TABLES = [
    ("", "has no column 'id'"),
    ("id,workload,shape,metric,value\n", "has no column 'unit'"),
    ("id,workload,shape,metric,value,unit\nx,a,b,time,1,us\n", "line 2: "),
    ("id,workload,shape,metric,value,unit\n1,a,b,time,fast,us\n", "line 2: "),
    ("id,workload,shape,metric,value,unit\n1,a\n", "line 2: "),
]
BAD_WORKLOADS = [
    ("[[workload]", "is no TOML file"),
    ("[[workload]]\nname = 'x'\n", "workload 1 'x': 'block' is missing"),
    ("workload = [1]\n", "workload 1"),
    ("[[left_out]]\nids = [1]\n", "left_out 1: it gives no reason"),
]
ENTRY = "[[workload]]\nname = 'w'\nblock = 'b'\nids = [1]\n"
BAD_ENTRIES = [
    ("mode = 'guess'\ninstance = 'trn1.2xlarge'\n", "no mode 'guess'; there are collective"),
    ("mode = 'op'\ninstance = 'p5.48xlarge'\n", "unknown instance 'p5.48xlarge'"),
    ("mode = 'op'\ninstance = 'trn2.3xlarge'\nlnc = 4\n", "no logical cores of 4"),
    ("mode = 'program'\ninstance = 'trn1.2xlarge'\n", "'steps' is missing"),
    (
        "mode = 'program'\ninstance = 'trn1.2xlarge'\nsteps = [{ load = 'a', bytes = 4 }]\n",
        "load 'a': no tile is named 'a'",
    ),
    (
        "mode = 'program'\ninstance = 'trn1.2xlarge'\n"
        "steps = [{ op = 'X', engine = 'fpu', n = 4 }]\n",
        "X: no engine 'fpu'",
    ),
    (
        "mode = 'program'\ninstance = 'trn1.2xlarge'\n"
        "steps = [{ op = 'X', engine = 'vector', n = 'N' }]\n",
        "cannot evaluate 'N': no size 'N'",
    ),
    (
        "mode = 'op'\ninstance = 'trn1.2xlarge'\nsections = [{ ops = 'a : 4 float31' }]\n",
        "no type 'float31'",
    ),
    (
        "mode = 'op'\ninstance = 'trn1.2xlarge'\nsections = [{ ops = 'a : 4 float32 @t' }]\n",
        "no layout @t for a tensor of 1 dimensions",
    ),
    (
        "mode = 'collective'\ninstance = 'trn1.32xlarge'\nkind = 'gossip'\nbytes = 4\nranks = 2\n",
        "'gossip' is missing or not known",
    ),
    ("mode = 'runtime'\ninstance = 'trn1.2xlarge'\nadds = ['luck_ns']\n", "no constant 'luck_ns'"),
]


def _run(
    table: str, workloads: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[int, Path, Path]:
    rows, work = tmp_path / "rows.csv", tmp_path / "work.toml"
    rows.write_text(table, encoding="utf-8")
    work.write_text(workloads, encoding="utf-8")
    monkeypatch.setattr(
        sys, "argv", ["sim_accuracy", "--measured", str(rows), "--workloads", str(work)]
    )
    return sim_accuracy.main(), rows, work


@pytest.mark.parametrize(
    ("table", "workloads", "said"),
    [
        *((table, WORKLOADS, said) for table, said in BAD_TABLES),
        *((CSV, workloads, said) for workloads, said in BAD_WORKLOADS),
        *((CSV, ENTRY + entry, said) for entry, said in BAD_ENTRIES),
    ],
)
def test_a_file_that_cannot_be_used_is_one_line(
    table: str,
    workloads: str,
    said: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    status, _, _ = _run(table, workloads, tmp_path, monkeypatch)
    printed = capsys.readouterr().err
    assert status == 1
    assert printed.count("\n") == 1
    assert said in printed


def test_a_unit_that_nobody_knows_leaves_the_row_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    table = CSV.replace("1,copy,8 tiles,bytes,trn1,kernel,time,15.0,us,A\n", "").replace(
        "time,100,us", "time,100,fortnights"
    )
    assert _run(table, WORKLOADS, tmp_path, monkeypatch)[0] == 0
    assert "no figure for a time in 'fortnights'" in capsys.readouterr().out
