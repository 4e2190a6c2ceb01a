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


class Product(torch.autograd.Function):
    """A product with a backward of its own, which calls what a forward pass calls."""

    @staticmethod
    def forward(ctx: torch.autograd.function.FunctionCtx, x: Tensor, w: Tensor) -> Tensor:
        """As ``linear`` does."""
        ctx.save_for_backward(x, w)
        return nn.functional.linear(x, w)

    @staticmethod
    def backward(
        ctx: torch.autograd.function.FunctionCtx, *gradients: Tensor
    ) -> tuple[Tensor, ...]:
        """Two products."""
        x, w = ctx.saved_tensors  # type: ignore[attr-defined]
        (of_y,) = gradients
        return nn.functional.linear(of_y, w.t()), nn.functional.linear(of_y.t(), x.t())


def test_a_backward_of_its_own_that_calls_layers_recomputes_nothing(tmp_path: Path) -> None:
    layers = nn.ModuleList(nn.Linear(256, 256, bias=False) for _ in range(4))

    def step() -> None:
        x = torch.ones(256, 256)
        for layer in layers:
            x = Product.apply(x, layer.weight)
        x.square().mean().backward()

    assert "ME02" not in {one.code for one in recorded(tmp_path, step).explain().findings}
