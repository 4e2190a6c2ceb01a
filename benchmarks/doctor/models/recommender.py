"""Embeddings of what somebody looked at, and layers over them."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from benchmarks.doctor.models.blocks import AttentionBlock, blocks
from benchmarks.doctor.plan import Plan

CLASSES = 64


class Recommender(nn.Module):
    """Ids of items in, scores of the next category out."""

    def __init__(self, plan: Plan) -> None:
        super().__init__()
        sizes = plan.sizes
        self.embed = plan.embedding(sizes.vocabulary, sizes.width)
        self.history = (
            AttentionBlock(plan, 0, sizes.width, sizes.length) if plan.attends else nn.Identity()
        )
        self.layers = blocks(plan, sizes.width)
        self.head = nn.Linear(sizes.width, CLASSES)

    def forward(self, items: Tensor) -> Tensor:
        """Of (batch, items)."""
        x = self.history(self.embed(items)).mean(1)
        return self.head(self.layers(x))  # type: ignore[no-any-return]


def samples(plan: Plan, count: int) -> tuple[Tensor, Tensor]:
    """Items, and the category of the next."""
    sizes = plan.sizes
    items = torch.randint(sizes.vocabulary, (count, sizes.length))
    return items, torch.randint(CLASSES, (count,))
