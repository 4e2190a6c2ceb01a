"""What the doctor says of real traces, and that their replays are exact."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

import trnscope
from trnscope.advisor.context import StepContext
from trnscope.advisor.explain import explain
from trnscope.advisor.finding import Explanation
from trnscope.advisor.window import typical_steps

H100 = "traces/TraceLens/tests/traces/h100"
INFERENCE = "traces/TraceLens/tests/traces/inference"
HTA = "traces/HTA/tests/data"
RESNET = (
    "traces/kineto/tb_plugin/samples/resnet50_num_workers_0/worker0.1623143089861.pt.trace.json.gz"
)
DLRM = "traces/param/et_replay/tests/inputs/dlrm_kineto"


def explained(shared: Path, *patterns: str) -> Explanation:
    paths = [path for pattern in patterns for path in sorted(shared.glob(pattern))]
    if not paths:
        pytest.skip(f"needs {patterns[0]}")
    return explain(trnscope.open(*paths))


@dataclass(frozen=True)
class Expected:
    """The findings in order, and the likely µs per step of the first."""

    codes: tuple[str, ...]
    likely_us: int
    hidden: tuple[str, ...] = ()


GOLDEN = {
    # ResNet-50 on a V100 with num_workers=0 and SGD in a loop: 69.3 of 174.9 ms are loading, and
    # the device still works on the step before meanwhile.
    RESNET: Expected(("IN02", "OP02"), 58_859),
    # DDP on a V100 with an all-reduce for each of 404 parameters, in eager ops: host-bound; the
    # gradients are filled with zeros.
    f"{HTA}/df_index_resolver/df_index_resolver.json.gz": Expected(
        ("HO02", "CM02", "HO12"), 120_852, ("CM01", "OP05")
    ),
    # DLRM on an A100: ten copies to the host per step keep the queue empty. Copies from pinned
    # memory take 8.4 ms of a step of 77.5, all of it beside other work.
    f"{HTA}/trace_diff/control/control.json.gz": Expected(("HO01",), 11_028, ("CM01", "DE02")),
    # Qwen on an H100: device-bound, with RMSNorm op by op, of which 80 % goes. Of the 1,621 pieces
    # of work 501 have no launch, all in the first 14 of 47 ms: recording began after it.
    f"{H100}/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz": Expected(("OP03", "CA05"), 5_633),
    # A video model: frames are resized in numpy on the main thread, attention is written out.
    f"{H100}/facebook_timesformer-base-finetuned-k400__1016002.json.gz": Expected(
        ("HO03", "OP08"), 175_481, ("HO01",)
    ),
    # GPT-OSS decoded eagerly on a B200: the device works 13 % of the time.
    "traces/TraceLens/tests/traces/b200/eager_trace.json.gz": Expected(("HO02", "CA01"), 43_020),
}


@pytest.mark.slow
@pytest.mark.parametrize("pattern", GOLDEN, ids=lambda pattern: Path(pattern).name[:24])
def test_findings_of_real_traces(shared: Path, pattern: str) -> None:
    expected = GOLDEN[pattern]
    result = explained(shared, pattern)
    assert tuple(finding.code for finding in result.findings) == expected.codes
    assert tuple(finding.code for finding in result.hidden) == expected.hidden
    times = result.findings[0].recoverable
    assert times is not None
    assert round(times.likely_ns / 1000) == pytest.approx(expected.likely_us, rel=0.001)
    assert result.step_ns is not None
    assert times.high_ns <= result.step_ns


def test_graph_launches_of_a_decode_step_have_no_fault(shared: Path) -> None:
    """One launch of 421 of 425 kernels, which is said (CA07): no cause is made up, and the idle
    time is not called healthy."""
    result = explained(shared, f"{INFERENCE}/vllm_decode_full/graph_execution.json.gz")
    assert [finding.code for finding in result.findings] == ["CA01", "CA07"]
    assert "No rule explains why the device is idle for 44 %" in result.verdict.text


def test_a_capture_of_a_graph_that_did_not_run_carries_no_verdict(shared: Path) -> None:
    result = explained(shared, f"{INFERENCE}/vllm_decode_full/capture_traces/*.json.gz")
    assert result.verdict.abstained
    assert "captured into a graph" in (result.verdict.reason or "")


def test_ranks_of_one_job_give_one_finding_a_cause(shared: Path) -> None:
    """DLRM on 8 V100: the all-to-all of the early ranks, the syncs, launches of small ops.

    These three give back 5.20, 5.15 and 4.94 of 19.9 ms, each on another rank.
    """
    result = explained(shared, f"{DLRM}/*.json")
    codes = [finding.code for finding in result.findings]
    assert codes == ["CM01", "HO01", "HO02", "IN02", "OP02"]
    assert "worst on rank 1, seen on 5 of 8" in result.findings[0].title


def test_the_autograd_trace_of_the_cpu_names_no_device(shared: Path) -> None:
    result = explained(shared, f"{HTA}/rank_non_gpu/rank_non_gpu.json.gz")
    assert [finding.code for finding in result.findings] == ["HO03"]
    withheld = {rule.code for rule in result.withheld}
    assert {"IN04", "HO01", "HO02", "OP05", "CM01"} <= withheld


@pytest.mark.parametrize(
    "pattern",
    [
        RESNET,
        f"{HTA}/trace_diff/*/*.json.gz",
        f"{HTA}/nccl_parser_config/nccl_data.json.gz",
        f"{H100}/*.json.gz",
        f"{INFERENCE}/sglang_decode/*.json.gz",
        f"{DLRM}/*.json",
        "traces/nsys-ai/tests/fixtures/mfu_2gpu_before.sqlite",
    ],
)
def test_replays_of_real_traces_are_exact(shared: Path, pattern: str) -> None:
    """Nothing removed gives the recorded time, to the nanosecond."""
    for path in sorted(shared.glob(pattern)):
        trace = trnscope.open(path).traces[0]
        window = typical_steps(trace)
        assert window is not None
        replay = StepContext(trace, window).replay
        assert replay is not None
        assert replay.recorded_ns == replay.graph.recorded_ns, path.name
