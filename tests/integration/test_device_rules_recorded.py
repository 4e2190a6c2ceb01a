"""Rules about memory and ranks, on small programs that torch really recorded."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import trnscope

torch = pytest.importorskip("torch")

from torch import Tensor, nn  # noqa: E402
from torch.profiler import ProfilerActivity, profile  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402

STEPS = 4


def recorded(folder: Path, step: Callable[[], None]) -> trnscope.Profile:
    """The trace of a few steps after two that are not recorded."""
    for _ in range(2):
        step()
    with profile(activities=[ProfilerActivity.CPU]) as made:
        for _ in range(STEPS):
            with torch.profiler.record_function("step"):
                step()
    path = folder / "trace.json"
    made.export_chrome_trace(str(path))
    return trnscope.open(path)


@pytest.mark.parametrize("reentrant", [False, True])
@pytest.mark.parametrize("is_fault", [False, True])
def test_what_checkpointing_computes_again_is_found(
    is_fault: bool, reentrant: bool, tmp_path: Path
) -> None:
    blocks = nn.ModuleList(
        nn.Sequential(nn.LayerNorm(256), nn.Linear(256, 1024), nn.GELU(), nn.Linear(1024, 256))
        for _ in range(3)
    )
    optimizer = torch.optim.SGD(blocks.parameters(), lr=1e-3)

    def forward(x: Tensor) -> Tensor:
        for block in blocks:
            x = checkpoint(block, x, use_reentrant=reentrant) if is_fault else block(x)
        return x

    def step() -> None:
        optimizer.zero_grad()
        forward(torch.ones(256, 256, requires_grad=True)).square().mean().backward()
        optimizer.step()

    opened = recorded(tmp_path, step)
    found = [one for one in opened.explain().findings if one.code == "ME02"]
    assert bool(found) == is_fault
    if is_fault:
        (trace,) = opened.traces
        names = {trace.strings[int(trace.slices.name[at])] for at in found[0].evidence}
        assert "aten::linear" in names and not any("backward" in name for name in names)
