"""A decoder that predicts the next token."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from benchmarks.doctor.models.blocks import AttentionBlock, MlpBlock
from benchmarks.doctor.plan import Plan


class Transformer(nn.Module):
    """Tokens in, scores of the next token out."""

    def __init__(self, plan: Plan) -> None:
        super().__init__()
        sizes = plan.sizes
        self.embed = plan.embedding(sizes.vocabulary, sizes.width)
        self.layers = nn.ModuleList(
            plan.wrap_block(layer, _Layer(plan, layer)) for layer in range(sizes.layers)
        )
        self.head = nn.Linear(sizes.width, sizes.vocabulary)

    def forward(self, tokens: Tensor) -> Tensor:
        """Of (batch, length)."""
        x = self.embed(tokens)
        for layer in self.layers:
            x = layer(x)
        return self.head(x).flatten(0, 1)  # type: ignore[no-any-return]


class _Layer(nn.Module):
    def __init__(self, plan: Plan, layer: int) -> None:
        super().__init__()
        self.attention = AttentionBlock(plan, layer, plan.sizes.width, plan.sizes.length)
        self.mlp = MlpBlock(plan, layer, plan.sizes.width)

    def forward(self, x: Tensor) -> Tensor:
        return self.mlp(self.attention(x))  # type: ignore[no-any-return]


def samples(plan: Plan, count: int) -> tuple[Tensor, Tensor]:
    """Tokens, and those that follow them."""
    sizes = plan.sizes
    tokens = torch.randint(sizes.vocabulary, (count, sizes.length + 1))
    return tokens[:, :-1], tokens[:, 1:]
