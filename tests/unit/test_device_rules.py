"""Rules of the device: figures worked out by hand, and what must not fire."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.unit.made_trace import MadeTrace
from tests.unit.neuron_profiles import read, write_tables
from tests.unit.rule_cases_device import (
    BACKWARD,
    DEVICE_CASES,
    GPU,
    HALF,
    after_backward,
    blocks,
    compiling,
    instructions,
    moving,
    neuron,
    on_halves,
    one_by_one,
    program,
    reduce,
    tables,
    transfers,
    traveling,
)
from trnscope.advisor.finding import Confidence, Explanation, Finding
from trnscope.model.kinds import DeviceKind, SliceKind, TrackKind
from trnscope.model.track import Device, Track
from trnscope.opened import OpenedProfile
from trnscope.opened import explain_profile as explain
from trnscope.report.explain import explain_lines
from trnscope.report.marks import view_of


def of(result: Explanation, code: str) -> Finding:
    return next(one for one in result.findings if one.code == code)


def fall_back(made: MadeTrace) -> None:
    made.call("nrt_tensor_read_wait", 300)
    made.call("nrt_tensor_write", 200)


def times(result: Explanation, code: str) -> tuple[int, int, int]:
    found = of(result, code).recoverable
    assert found is not None
    return found.low_ns, found.likely_ns, found.high_ns


def test_the_device_is_the_limit_once_launching_is_not(tmp_path: Path) -> None:
    # Ten ops of 165 µs on the host and 40 on the device. Without 85 % of the host's part the device
    # is the limit: 29 µs each without their starts, 20 at the most that may go.
    result = explain(one_by_one(40)(tmp_path))
    low, likely, high = times(result, "NE02")
    assert result.step_ns == 1_650_000
    assert low == pytest.approx(0.6 * 1_650_000, rel=0.01)
    assert likely == pytest.approx(1_650_000 - 10 * 29_000, rel=0.01)
    assert high == pytest.approx(1_650_000 - 10 * 20_000, rel=0.01)


def test_where_the_model_is_compiled_the_rest_is_named(tmp_path: Path) -> None:
    def write(made: MadeTrace) -> None:
        made.op("Torch-Compiled Region: 0/0", 5, lambda: program(made, "model", 300))
        for _ in range(10):
            program(made, "aten::mul_", 40)

    finding = of(explain(neuron(write)(tmp_path)), "NE02")
    assert finding.title.startswith("10 ops per step that are not compiled run as a program")
    assert "optimizer" in finding.tries[0]


def test_ops_of_the_optimizer_count_only_alone(tmp_path: Path) -> None:
    def write(made: MadeTrace) -> None:
        for _ in range(9):
            program(made, "aten::mm", 40)
        made.range(
            "Optimizer.step#SGD.step",
            0,
            lambda: [program(made, "aten::add_", 40) for _ in range(5)],  # type: ignore[arg-type,return-value]
        )

    assert of(explain(neuron(write)(tmp_path)), "NE02").title.startswith("9 ops per step run")


def test_a_device_profile_alone_is_judged(tmp_path: Path) -> None:
    # Vector works 9 of 10 µs, alone for all of it; half of that is likely, a quarter at least.
    result = explain(tables(Instruction=instructions("vector", 9_000))(tmp_path))
    assert not result.verdict.abstained
    assert times(result, "NE07") == (2_250, 4_500, 9_000)
    assert "90 % of the programs' time, the Tensor engine 1 %" in of(result, "NE07").title


@pytest.mark.parametrize(
    ("steps_of", "code"),
    [
        ((0, 2), "NE04"),  # two layers, one of them first used in step 2
        ((0, 1), "NE04"),
        ((0, 5), "NE04"),
        ((3, 5), "NE03"),
        ((0, 2, 4), "NE03"),
        ((0, 1, 2, 3, 4, 5), "NE03"),
    ],
)
def test_compiling_that_ends_with_the_first_steps_happens_once(
    tmp_path: Path, steps_of: tuple[int, ...], code: str
) -> None:
    for ops in (("aten::mm",), ("aten::mm", "aten::add", "aten::sum")):
        result = explain(compiling(steps_of, 6, ops)(tmp_path / ops[-1][6:]))
        assert [one.code for one in result.findings if one.code in ("NE03", "NE04")] == [code]
        if code == "NE03":
            # Each run takes 1 ms; their sum over six steps.
            each = 1_000_000 * len(steps_of) // 6
            assert times(result, "NE03") == (round(each / 2), each, each)
            assert of(result, "NE03").confidence is Confidence.MEDIUM


def test_what_one_device_computes_hides_nothing_of_another(tmp_path: Path) -> None:
    # On device 0 Vector works alone for 9 of 10 µs, as above. On device 1 Tensor works 9.9.
    made = MadeTrace(tmp_path)
    for device, engine, start, end in (
        (0, "vector", 0, 9_000),
        (0, "tensor", 9_900, 10_000),
        (1, "tensor", 0, 9_900),
    ):
        owner = Device(DeviceKind.NEURON, device, "AWS Trainium2")
        track = Track(
            TrackKind.DEVICE_ENGINE, owner.label, engine, thread_name=engine, device=owner
        )
        number = made.builder.track(track)
        made.builder.slice(number, "OP", start, end - start, SliceKind.INSTRUCTION)
    assert times(explain(made.open()), "NE07") == (2_250, 4_500, 9_000)


def test_small_transfers_lose_what_their_bytes_would_not_take(tmp_path: Path) -> None:
    # 16 KiB are 128 bytes a partition. An engine of a Trainium2 moves 19.484 bytes a ns, and needs
    # 125 ns for the least piece: 2,435.5 bytes, so that 128 / 2435.5 of the rate is reached.
    result = explain(moving(16 << 10, 5_000)(tmp_path))
    lost = round(5_000 * (1 - 128 / (125 * 19.484375)))
    assert times(result, "NE06") == (round(0.5 * lost), round(0.8 * lost), lost)
    assert "NE08" not in {one.code for one in result.findings}, "that time is the small ones'"


@pytest.mark.parametrize(
    ("instance", "each", "is_small"),
    [
        ("trn2.3xlarge", 1000, True),  # less than half of 2,435.5 bytes
        ("trn1.2xlarge", 1000, False),  # 78.8 ns at 17 bytes/ns: 1,339.6 bytes
        ("trn1.2xlarge", 600, True),
        (None, 600, True),  # as JSON does: small on every chip
        (None, 1000, False),
        ("trn9.2xlarge", 100, False),  # an unknown chip: no size is called small
    ],
)
def test_what_is_small_depends_on_the_chip(
    tmp_path: Path, instance: str | None, each: int, is_small: bool
) -> None:
    path = write_tables(
        tmp_path / "profile",
        {
            "Instruction": instructions("vector", 1_000),
            "DmaPacketAggregated": transfers(128 * each, 5_000),
            "Metadata": [{"instance_type": instance} if instance else {"explorer_version": "1"}],
        },
    )
    result = explain(OpenedProfile((read(path, tmp_path),)))
    found = {one.code for one in result.findings}
    assert ("NE06" in found, "NE08" in found) == (is_small, not is_small)


def test_a_large_transfer_of_small_pieces_is_known_by_its_rate(tmp_path: Path) -> None:
    # 4 MiB in 5 ms are 0.84 bytes/ns, of 368: nearly all of it is lost. At 100 µs it is no fault.
    rate = {"instance_type": "trn2.3xlarge", "dma_ddr_bandwidth": 368e9}
    for us, is_fault in ((5_000, True), (100, False)):
        rows = [{"start_ts": 0, "end_ts": us * 1000, "id": 1, "queue_name": "q",
                 "transfer_bytes": 4 << 20, "variable": "rows"}]  # fmt: skip
        path = write_tables(
            tmp_path / str(us) / "p", {"DmaPacketAggregated": rows, "Metadata": [rate]}
        )
        result = explain(OpenedProfile((read(path, tmp_path / str(us)),)))
        assert ("NE06" in {one.code for one in result.findings}) == is_fault
        if is_fault:
            lost_ns = 5_000_000 * (1 - (4 << 20) / 5_000_000 / 368)
            assert times(result, "NE06")[2] == pytest.approx(lost_ns, rel=0.001)


def test_kernels_that_nearly_fill_the_gpu_are_left_alone(tmp_path: Path) -> None:
    # 24 x 2 blocks on 132 multiprocessors leave 64 % of it idle for half of the step.
    result = explain(blocks(24)(tmp_path / "a"))
    assert "64 % of it idles" in of(result, "DE01").title
    low, likely, high = times(result, "DE01")
    idle_ns = 500_000 * (1 - 48 / 132)
    assert likely == pytest.approx(0.5 * idle_ns, rel=0.02)
    assert (low, high) == pytest.approx((0.2 * idle_ns, idle_ns), rel=0.02)
    # 64 x 2 blocks fill nearly all of them: that is not said to be hidden either.
    full = explain(blocks(64)(tmp_path / "b"))
    assert "DE01" not in {one.code for one in (*full.findings, *full.hidden)}


def test_the_copies_into_buckets_go_with_the_reductions(tmp_path: Path) -> None:
    result = explain(DEVICE_CASES["CM05"].fires(tmp_path))
    low, likely, high = times(result, "CM05")
    # The first of two reductions: 300 µs on the device, 5 of launch and 10 of its op, 1 of a wait.
    assert likely == high == pytest.approx(310_000, abs=10_000)
    assert low == pytest.approx(0.8 * likely, rel=0.02)


@pytest.mark.parametrize(("in_nelems", "is_gradient"), [(1, False), (4095, False), (4096, True)])
def test_a_loss_that_waits_for_a_slow_rank_is_no_gradient(
    tmp_path: Path, in_nelems: int, is_gradient: bool
) -> None:
    late = explain(after_backward(late=True, in_nelems=in_nelems)(tmp_path / "late"))
    typed = explain(traveling("Float", in_nelems)(tmp_path / "typed"))
    for result, code in ((late, "CM04"), (typed, "CM06")):
        found = {one.code for one in (*result.findings, *result.hidden)}
        assert (code in found) == is_gradient
        assert code not in {one.code for one in result.withheld}


def test_without_sizes_nothing_is_said_of_gradients(tmp_path: Path) -> None:
    made = MadeTrace(tmp_path)

    def write() -> None:
        made.op("aten::mm", 5, lambda: made.launch(1000, "sm90_gemm_bf16bf16"))
        made.op(BACKWARD, 5, lambda: made.launch(1000))
        made.wait()
        reduce(made, 1000, dtype="Float")
        made.wait()

    reasons = {one.code: one.reason for one in explain(made.steps(4, write).open()).withheld}
    assert "sizes of messages" in reasons["CM04"] and "sizes of messages" in reasons["CM06"]


def normalising(folder: Path, after: str, number: int = HALF) -> Explanation:
    """A layer norm at the memory's bandwidth, and an op behind it."""
    made = MadeTrace(folder, GPU)
    dims = json.dumps([[1 << 15, 1 << 13], [], [1 << 13], [1 << 13]])
    types = json.dumps(["c10::BFloat16", "", "c10::BFloat16", "c10::BFloat16"])

    def body() -> None:
        made.op("aten::mm", 5, lambda: made.launch(300))
        made.op(
            "aten::native_layer_norm", 5, lambda: made.launch(400),
            input_dims=dims, input_types=types,
        )  # fmt: skip
        on_halves(made, after, 300, number=number)
        made.op("aten::mm", 5, lambda: made.launch(300))
        made.wait()

    return explain(made.steps(4, body).open())


def test_a_norm_alone_has_nothing_to_be_fused_with(tmp_path: Path) -> None:
    # 2 x 0.54 GB take the H100 320 of 400 µs. Its neighbours are products, or much smaller.
    alone = normalising(tmp_path / "a", "aten::mm")
    small = normalising(tmp_path / "b", "aten::add", HALF >> 5)
    for result in (alone, small):
        assert "ME03" not in {one.code for one in (*result.findings, *result.hidden)}
    # An addition of as many numbers behind it: both count, 40 % of their 700 µs.
    both = normalising(tmp_path / "c", "aten::add")
    assert times(both, "ME03")[1] == pytest.approx(0.4 * 700_000, rel=0.02)
    assert of(both, "ME03").title.endswith("aten::native_layer_norm, aten::add")


def test_ops_at_the_memory_are_named_by_their_time_on_the_device(tmp_path: Path) -> None:
    made = MadeTrace(tmp_path, GPU)

    def body() -> None:
        on_halves(made, "aten::add", 300)
        made.op(
            "aten::mul", 200, lambda: made.launch(100),
            input_dims=json.dumps([[HALF >> 2]] * 2), input_types=json.dumps(["c10::BFloat16"] * 2),
        )  # fmt: skip
        made.wait()

    title = of(explain(made.steps(4, body).open()), "ME03").title
    assert title.endswith("aten::add, aten::mul"), "not by the 200 µs of the host"


def test_figures_of_several_ranks_say_whose_they_are(tmp_path: Path) -> None:
    traces = []
    for rank, us in enumerate((40, 50)):
        made = MadeTrace(tmp_path / str(rank), "Trainium2", DeviceKind.NEURON)

        def write(made: MadeTrace = made, us: int = us) -> None:
            made.op("aten::linalg_inv", 300, lambda: fall_back(made))
            for _ in range(10):
                program(made, "aten::add", us)

        traces += made.steps(4, write).open().traces
    profile = OpenedProfile(tuple(traces))
    result = explain(profile)
    assert result.shown_on == "file 1"
    text = [line.plain for line in explain_lines(result, view_of(profile))]
    (note,) = [line for line in text if line.startswith("Each figure is for that cause alone")]
    assert "All causes found on file 1 together" in note


def test_a_queue_that_was_seen_full_holds_back_launches(tmp_path: Path) -> None:
    # Four programs of 500 µs, each waited for, 100 of host work behind each and 1,500 behind all.
    # The queue holds one: without the waits a launch still waits for the program before it, so that
    # the fourth comes at 1,500 and the step takes 3,100 in place of 3,900.
    def write(made: MadeTrace) -> None:
        made.launch(10, host_us=1)
        made.wait("nrt_queue_wait")
        for _ in range(4):
            made.op("aten::mm", 100, lambda: (made.launch(500, host_us=1), made.wait("nrt_wait")))  # type: ignore[arg-type,return-value,func-returns-value]
        made.op("aten::add", 1500)

    result = explain(neuron(write)(tmp_path))
    assert result.step_ns == pytest.approx(3_936_000, rel=0.01)
    assert times(result, "HO01")[1] == pytest.approx(800_000, rel=0.05)
