"""Formulas written out by hand where torch has one op, and loops where it has one call."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks.doctor.attention import attend
from benchmarks.doctor.fault import SIM_MODELS, each_or_half, fault
from benchmarks.doctor.plan import Plan
from benchmarks.doctor.trainer import Trainer

ON_CPU_TOO = ("transformer", "rnn")


class LayerNormByHand(nn.Module):
    """Over the last dimension."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.ones(width)), nn.Parameter(torch.zeros(width))

    def forward(self, x: Tensor) -> Tensor:
        """As in the paper."""
        centred = x - x.mean(-1, keepdim=True)
        variance = centred.pow(2).mean(-1, keepdim=True)
        return centred * torch.rsqrt(variance + 1e-5) * self.weight + self.bias


class ChannelNormByHand(nn.Module):
    """Over channels and places of an image."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width, 1, 1))
        self.bias = nn.Parameter(torch.zeros(width, 1, 1))

    def forward(self, x: Tensor) -> Tensor:
        """As group norm with one group."""
        centred = x - x.mean((1, 2, 3), keepdim=True)
        variance = centred.pow(2).mean((1, 2, 3), keepdim=True)
        return centred * torch.rsqrt(variance + 1e-5) * self.weight + self.bias


@fault("norm-by-hand", "operators", "OP03", cpu=ON_CPU_TOO, sim=SIM_MODELS)
def norm_by_hand(plan: Plan, severe: bool) -> None:
    """A normalisation op by op."""
    built_in, of_channels = plan.norm, plan.channel_norm

    def norm(layer: int, width: int) -> nn.Module:
        by_hand = each_or_half(severe, layer)
        return LayerNormByHand(width) if by_hand else built_in(layer, width)

    def channel_norm(layer: int, width: int) -> nn.Module:
        by_hand = each_or_half(severe, layer)
        return ChannelNormByHand(width) if by_hand else of_channels(layer, width)

    plan.norm, plan.channel_norm = norm, channel_norm


def _gelu(x: Tensor) -> Tensor:
    inner = 0.7978845608 * (x + 0.044715 * x.pow(3))
    return 0.5 * x * (1.0 + torch.tanh(inner))


@fault("activation-by-hand", "operators", "OP04", cpu=ON_CPU_TOO, sim=SIM_MODELS)
def activation_by_hand(plan: Plan, severe: bool) -> None:
    """GELU by its formula with tanh."""
    built_in = plan.activation
    plan.activation = lambda layer: _gelu if each_or_half(severe, layer) else built_in(layer)


def _with_attention(plan: Plan, _severe: bool) -> None:
    plan.attends = True


@fault(
    "attention-by-hand", "operators", "OP08",
    cpu=ON_CPU_TOO, sim=SIM_MODELS, setting=_with_attention,
)  # fmt: skip
def attention_by_hand(plan: Plan, severe: bool) -> None:
    """Two products with a softmax between them."""
    fused = plan.attention
    plan.attention = lambda layer: attend if each_or_half(severe, layer) else fused(layer)


@fault("optimizer-loop", "operators", "OP02", cpu=ON_CPU_TOO, sim=SIM_MODELS)
def optimizer_loop(plan: Plan, severe: bool) -> None:
    """One parameter after another."""
    if severe:
        plan.optimizer = lambda ps: torch.optim.AdamW(ps, lr=1e-3, foreach=False, amsgrad=True)
    else:
        plan.optimizer = lambda ps: torch.optim.AdamW(ps, lr=1e-3, foreach=False)


class InPieces(nn.Module):
    """A linear layer computed some columns at a time."""

    def __init__(self, into: int, out: int, columns: int) -> None:
        super().__init__()
        self.whole, self.columns = nn.Linear(into, out), columns

    def forward(self, x: Tensor) -> Tensor:
        """The same product, column block by column block."""
        weights = self.whole.weight.split(self.columns)
        biases = self.whole.bias.split(self.columns)
        pieces = [F.linear(x, w, b) for w, b in zip(weights, biases, strict=True)]
        return torch.cat(pieces, -1)


def _with_shapes(plan: Plan, _severe: bool) -> None:
    plan.options = ("shapes",)


@fault(
    "matmul-in-pieces", "operators", "OP09",
    cpu=("convnet", "transformer", "recommender", "rnn"), setting=_with_shapes,
)  # fmt: skip
def matmul_in_pieces(plan: Plan, severe: bool) -> None:
    """Head by head instead of all heads at once."""
    pieces = 32 if severe else 16
    plan.linear = lambda _layer, into, out: InPieces(into, out, max(out // pieces, 1))


def _hardswish(x: Tensor) -> Tensor:
    return x * torch.clamp(x + 3.0, 0.0, 6.0) / 6.0


def _mish(x: Tensor) -> Tensor:
    return x * torch.tanh(torch.log(1.0 + torch.exp(x)))


def _with_gate(plan: Plan, severe: bool) -> None:
    plan.between = lambda _layer: F.mish if severe else F.hardswish


@fault(
    "gate-by-hand", "operators", "OP04", cpu=ON_CPU_TOO, sim=SIM_MODELS, setting=_with_gate,
)  # fmt: skip
def gate_by_hand(plan: Plan, severe: bool) -> None:
    """Mish or hard swish from their parts."""
    plan.between = lambda _layer: _mish if severe else _hardswish


def _rows_apart(rows: int) -> Any:
    def loop(x: Tensor) -> Tensor:
        parts = x.flatten(0, -2).tensor_split(rows)
        return torch.cat([part * 1.5 + 0.5 for part in parts]).view(x.shape)

    return loop


def _scaled(plan: Plan, _severe: bool) -> None:
    plan.between = lambda _layer: lambda x: x * 1.5 + 0.5


@fault(
    "ops-row-by-row", "operators", "OP01",
    cpu=("convnet", "transformer", "recommender", "rnn"), setting=_scaled,
)  # fmt: skip
def ops_row_by_row(plan: Plan, severe: bool) -> None:
    """A loop over small parts of a batch where one op would do."""
    rows = 240 if severe else 120
    plan.between = lambda _layer: _rows_apart(rows)


def _cross_entropy(scores: Tensor, targets: Tensor) -> Tensor:
    shifted = scores - scores.max(-1, keepdim=True).values
    logs = shifted - shifted.exp().sum(-1, keepdim=True).log()
    return -logs.gather(1, targets[:, None]).mean()


def _cross_entropy_with_one_hot(scores: Tensor, targets: Tensor) -> Tensor:
    exponents = torch.exp(scores - scores.max(-1, keepdim=True).values)
    probabilities = exponents / exponents.sum(-1, keepdim=True)
    wanted = F.one_hot(targets, scores.shape[-1]).to(scores.dtype)
    return -(wanted * torch.log(probabilities + 1e-6)).sum(-1).mean()


def _many_classes(plan: Plan, _severe: bool) -> None:
    plan.sizes = replace(plan.sizes, vocabulary=16384 if plan.simulated else 2048)


@fault(
    "loss-by-hand", "operators", "OP10",
    cpu=("transformer", "rnn"), sim=("transformer",), setting=_many_classes,
)  # fmt: skip
def loss_by_hand(plan: Plan, severe: bool) -> None:
    """Cross-entropy from its formula."""
    plan.loss = _cross_entropy_with_one_hot if severe else _cross_entropy


def _mask(x: Tensor, copies: int, heads: int) -> Tensor:
    """Causal, for each sample: from positions, as if it differed from batch to batch."""
    length = x.shape[1]
    at = torch.arange(length, device=x.device)
    allowed = (at[None, :] <= at[:, None]).expand(copies, heads, length, length)
    blocked = (1.0 - allowed.to(x.dtype)) * -10000.0
    return blocked.masked_fill(allowed, 0.0)


def _with_mask(plan: Plan, _severe: bool) -> None:
    plan.attends = True
    plan.options = ("shapes",)


@fault(
    "mask-made-anew", "operators", "OP11",
    cpu=ON_CPU_TOO, sim=SIM_MODELS, setting=_with_mask,
)  # fmt: skip
def mask_made_anew(plan: Plan, severe: bool) -> None:
    """The same mask is built in each layer of each step."""
    plan.mask = lambda x: _mask(x, x.shape[0], plan.sizes.heads if severe else 1)


def _clips(plan: Plan, _severe: bool) -> None:
    def clip(trainer: Trainer) -> None:
        nn.utils.clip_grad_norm_(trainer.model.parameters(), 1.0, foreach=True)

    plan.before_update = [clip]


@fault("clip-loop", "operators", "HO10", cpu=ON_CPU_TOO, sim=SIM_MODELS, setting=_clips)
def clip_loop(plan: Plan, severe: bool) -> None:
    """Gradients are clipped one by one, their norms read on the host."""

    def clip(trainer: Trainer) -> None:
        for parameter in trainer.model.parameters():
            if parameter.grad is None:
                continue
            norm = parameter.grad.norm()
            if severe:
                norm.item()
            parameter.grad.mul_(torch.clamp(1.0 / (norm + 1e-6), max=1.0))

    plan.before_update = [clip]
