"""Number formats: too wide, or changed back and forth."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from benchmarks.doctor.fault import SIM_MODELS, each_or_half, fault
from benchmarks.doctor.plan import Plan, Pointwise


class InDouble(nn.Module):
    """A linear layer in float64, because a constant was one."""

    def __init__(self, into: int, out: int) -> None:
        super().__init__()
        self.inner = nn.Linear(into, out)

    def forward(self, x: Tensor) -> Tensor:
        """To double, the product, and back."""
        weight, bias = self.inner.weight.double(), self.inner.bias.double()
        return nn.functional.linear(x.double(), weight, bias).to(x.dtype)


def _with_shapes(plan: Plan, _severe: bool) -> None:
    plan.options = ("shapes",)


@fault(
    "float64",
    "formats",
    "OP15",
    cpu=("transformer", "recommender", "rnn"),
    sim=("transformer", "recommender"),
    setting=_with_shapes,
)
def float64(plan: Plan, severe: bool) -> None:
    """Some layers compute in float64."""
    single = plan.linear

    def linear(layer: int, into: int, out: int) -> nn.Module:
        is_double = layer == 0 or severe
        return InDouble(into, out) if is_double else single(layer, into, out)

    plan.linear = linear


@fault("float32", "formats", "OP05", sim=SIM_MODELS)
def float32(plan: Plan, severe: bool) -> None:
    """Nobody said bfloat16, for all of the model or for its linear layers."""
    if severe:
        plan.dtype = torch.float32
        return
    single = plan.linear

    def linear(layer: int, into: int, out: int) -> nn.Module:
        return InFloat32(into, out) if each_or_half(False, layer) else single(layer, into, out)

    plan.linear = linear


class InFloat32(nn.Module):
    """A linear layer left out of mixed precision."""

    def __init__(self, into: int, out: int) -> None:
        super().__init__()
        self.inner = nn.Linear(into, out)

    def forward(self, x: Tensor) -> Tensor:
        """Product in float32."""
        weight, bias = self.inner.weight.float(), self.inner.bias.float()
        return nn.functional.linear(x.float(), weight, bias).to(x.dtype)


def _there_and_back(times: int) -> Pointwise:
    def cast(x: Tensor) -> Tensor:
        other = torch.bfloat16 if x.dtype == torch.float32 else torch.float32
        for _ in range(times):
            x = x.to(other).to(x.dtype)
        return x

    return cast


@fault("casts", "formats", "OP07", cpu=("transformer", "rnn"), sim=SIM_MODELS)
def casts(plan: Plan, severe: bool) -> None:
    """Activations change their format in every layer, and back."""
    plan.between = lambda _layer: _there_and_back(12 if severe else 6)
