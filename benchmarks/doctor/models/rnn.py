"""A recurrent network over tokens, with layers over its outputs."""

from __future__ import annotations

from torch import Tensor, nn

from benchmarks.doctor.models.blocks import AttentionBlock, blocks
from benchmarks.doctor.plan import Plan


class Rnn(nn.Module):
    """Tokens in, scores of the next token out."""

    def __init__(self, plan: Plan) -> None:
        super().__init__()
        sizes = plan.sizes
        self.embed = plan.embedding(sizes.vocabulary, sizes.width)
        self.recurrent = nn.GRU(sizes.width, sizes.width, batch_first=True)
        self.attend = (
            AttentionBlock(plan, 0, sizes.width, sizes.length) if plan.attends else nn.Identity()
        )
        self.layers = blocks(plan, sizes.width)
        self.head = nn.Linear(sizes.width, sizes.vocabulary)

    def forward(self, tokens: Tensor) -> Tensor:
        """Of (batch, length)."""
        x, _ = self.recurrent(self.embed(tokens))
        return self.head(self.layers(self.attend(x))).flatten(0, 1)  # type: ignore[no-any-return]
