"""A training program as a plan: the pieces that it is put together from, each healthy by default.

A fault replaces pieces, so that a faulty program differs from its healthy twin by the fault alone.
Functions that make a piece are given the layer that it is for.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

if TYPE_CHECKING:
    from benchmarks.doctor.trainer import Trainer

Attend = Callable[[Tensor, Tensor, Tensor, "Tensor | None"], Tensor]
Pointwise = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Sizes:
    """How large a model is."""

    batch: int
    length: int
    """Positions of a sequence; the side of an image."""
    width: int
    layers: int
    vocabulary: int
    heads: int = 4


def adamw(parameters: list[nn.Parameter]) -> torch.optim.Optimizer:
    """The fused optimizer on the CPU; over lists of tensors on the simulated device."""
    is_cpu = parameters[0].device.type == "cpu"
    return torch.optim.AdamW(parameters, lr=1e-3, fused=is_cpu or None)


def take(attend: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Tensor:
    """Fused attention."""
    return F.scaled_dot_product_attention(attend, key, value, attn_mask=mask)


@dataclass
class Plan:
    """What a program does. Faults change it before the program is made."""

    model: str
    device: str
    """``cpu``, or ``neuron``: the simulated device."""
    sizes: Sizes
    dtype: torch.dtype = torch.float32
    threads: int = 1
    options: tuple[str, ...] = ()
    """What is recorded besides: ``stack``, ``shapes``."""
    attends: bool = False
    """Whether a model that could do without attention has it."""
    # Pieces of the model.
    norm: Callable[[int, int], nn.Module] = lambda _layer, width: nn.LayerNorm(width)
    channel_norm: Callable[[int, int], nn.Module] = lambda _layer, width: nn.GroupNorm(1, width)
    activation: Callable[[int], Pointwise] = lambda _layer: lambda x: F.gelu(x, approximate="tanh")
    attention: Callable[[int], Attend] = lambda _layer: take
    linear: Callable[[int, int, int], nn.Module] = lambda _layer, m, n: nn.Linear(m, n)
    between: Callable[[int], Pointwise] = lambda _layer: lambda x: x
    """What is done to the output of each block."""
    wrap_block: Callable[[int, nn.Module], nn.Module] = lambda _layer, block: block
    embedding: Callable[[int, int], nn.Module] = nn.Embedding
    mask: Callable[[Tensor], Tensor] | None = None
    """Makes the mask of attention for an input, each time; absent: made once."""
    loss: Callable[[Tensor, Tensor], Tensor] = F.cross_entropy
    wrap_model: Callable[[nn.Module], nn.Module] = lambda model: model
    """Compiles it, or shares it among ranks."""
    # Pieces of the training loop.
    optimizer: Callable[[list[nn.Parameter]], torch.optim.Optimizer] = adamw
    sample: Callable[[Tensor], Tensor] = lambda x: x
    """What is done to each sample as it is read."""
    collate: Callable[[list[Any]], Any] | None = None
    sampled: bool = False
    """Whether batches are made of samples; else they are there, whole."""
    workers: int = 0
    to_device: Callable[[Tensor, str], Tensor] = lambda x, device: x.to(device)
    prepare: Callable[[Trainer, Tensor, Tensor], tuple[Tensor, Tensor]] = lambda _, x, y: (x, y)
    """What is done to inputs and targets on the device."""
    around_step: Callable[[], AbstractContextManager[object]] = nullcontext
    before_update: list[Callable[[Trainer], None]] = field(default_factory=list)
    """Between backward and the optimizer's step."""
    after_step: list[Callable[[Trainer], None]] = field(default_factory=list)
    micro_batches: int = 1
    """Passes whose gradients are added up before the optimizer steps."""
    without_sync: Callable[[Trainer], AbstractContextManager[object]] = lambda _: nullcontext()
    """Around all of them but the last."""
    warm_up: int = 3
    """Steps that are not recorded."""
    ranks: int = 1

    @property
    def simulated(self) -> bool:
        """Whether it runs on the simulated device."""
        return self.device == "neuron"


ON_CPU = {
    "transformer": Sizes(batch=8, length=48, width=96, layers=3, vocabulary=256),
    "convnet": Sizes(batch=8, length=16, width=32, layers=3, vocabulary=64),
    "recommender": Sizes(batch=256, length=16, width=96, layers=3, vocabulary=1024),
    "rnn": Sizes(batch=8, length=32, width=96, layers=3, vocabulary=256),
}
"""Models of which a step takes tens of milliseconds on one core."""
SIMULATED = {
    "transformer": Sizes(16, 1024, 2048, 2, 4096, heads=16),
    "convnet": Sizes(batch=256, length=64, width=256, layers=3, vocabulary=64),
    "recommender": Sizes(batch=32768, length=8, width=2048, layers=3, vocabulary=16384),
}
"""Models that are limited by the device, op by op."""


def healthy_plan(model: str, device: str) -> Plan:
    """The program without any fault."""
    if device == "cpu":
        return Plan(model, device, ON_CPU[model])
    return Plan(model, device, SIMULATED[model], dtype=torch.bfloat16)
