"""A small transformer that trains for real, healthy or with one fault of a kind that people make.

``python -m benchmarks.doctor.program --fault attention``. Without a fault it is the healthy twin:
the two differ by that fault alone, and compute the same loss but for rounding.
"""

from __future__ import annotations

import argparse
import gc
import json
import math
import random

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

WIDTH, LAYERS, HEADS, CONTEXT, BATCH, VOCABULARY = 96, 6, 4, 64, 8, 128
DOCUMENTS, WORDS = 64, 1500
VOCABULARY_OF_TEXTS = ("the", "quick", "brown", "fox", "jumps")
FAULTS = ("loader", "optimizer", "norm", "attention", "activation", "python", "gc", "heads")


class Text(Dataset[Tensor]):
    """Samples of characters, tokenized once, or anew each time (the fault)."""

    def __init__(self, anew: bool) -> None:
        words = random.Random(0)
        self.texts = [
            " ".join(words.choice(VOCABULARY_OF_TEXTS) for _ in range(WORDS))
            for _ in range(DOCUMENTS)
        ]
        self.tokens = None if anew else [tokenize(text) for text in self.texts]

    def __len__(self) -> int:
        return DOCUMENTS

    def __getitem__(self, index: int) -> Tensor:
        return tokenize(self.texts[index]) if self.tokens is None else self.tokens[index]


def tokenize(text: str) -> Tensor:
    """The first characters as numbers, after looking at each character of the text."""
    numbers = [ord(character) % VOCABULARY for character in text]
    return torch.tensor(numbers[: CONTEXT + 1])


class Norm(nn.Module):
    """Layer normalisation, built in or written out (the fault)."""

    def __init__(self, by_hand: bool) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.ones(WIDTH)), nn.Parameter(torch.zeros(WIDTH))
        self.by_hand = by_hand

    def forward(self, x: Tensor) -> Tensor:
        """Normalise the last dimension."""
        if not self.by_hand:
            return F.layer_norm(x, (WIDTH,), self.weight, self.bias)
        centred = x - x.mean(-1, keepdim=True)
        variance = centred.pow(2).mean(-1, keepdim=True)
        return centred * torch.rsqrt(variance + 1e-5) * self.weight + self.bias


class Attention(nn.Module):
    """Causal attention: fused or written out; projections at once or head by head (faults)."""

    def __init__(self, by_hand: bool, by_head: bool) -> None:
        super().__init__()
        self.project, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.register_buffer("mask", torch.full((CONTEXT, CONTEXT), -math.inf).triu(1))
        self.by_hand, self.by_head = by_hand, by_head

    def forward(self, x: Tensor) -> Tensor:
        """Mix positions, each with those before it."""
        batch, length, _ = x.shape
        parts = self._by_head(x) if self.by_head else self.project(x)
        q, k, v = parts.view(batch, length, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        if self.by_hand:
            scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]) + self.mask
            y = scores.softmax(-1) @ v
        else:
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(batch, length, WIDTH))

    def _by_head(self, x: Tensor) -> Tensor:
        """The same projection in pieces of eight columns."""
        weights, biases = self.project.weight.split(8), self.project.bias.split(8)
        flat = x.reshape(-1, WIDTH)
        pieces = [torch.addmm(b, flat, w.t()) for w, b in zip(weights, biases, strict=True)]
        return torch.cat(pieces, -1).view(*x.shape[:2], -1)


class Block(nn.Module):
    """One layer."""

    def __init__(self, fault: str | None) -> None:
        super().__init__()
        self.first, self.second = Norm(fault == "norm"), Norm(fault == "norm")
        self.attention = Attention(fault == "attention", fault == "heads")
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        self.by_hand = fault == "activation"

    def forward(self, x: Tensor) -> Tensor:
        """Attention, then two linear layers, each added to what came in."""
        x = x + self.attention(self.first(x))
        return x + self.down(self.activate(self.up(self.second(x))))

    def activate(self, x: Tensor) -> Tensor:
        """GELU by its formula with tanh."""
        if not self.by_hand:
            return F.gelu(x, approximate="tanh")
        inner = 0.7978845608 * (x + 0.044715 * x.pow(3))
        return 0.5 * x * (1.0 + torch.tanh(inner))


def train(fault: str | None, steps: int) -> None:
    """Train for some steps."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    embed, head = nn.Embedding(VOCABULARY, WIDTH), nn.Linear(WIDTH, VOCABULARY)
    model = nn.Sequential(embed, *(Block(fault) for _ in range(LAYERS)), head)
    loader = DataLoader(Text(fault == "loader"), BATCH, shuffle=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=fault != "optimizer")
    kept = [{"number": number} for number in range(400_000)]
    for _, batch in zip(range(steps), endless(loader), strict=False):
        scores = model(batch[:, :-1])
        loss = F.cross_entropy(scores.flatten(0, 1), batch[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        if fault == "python":
            json.dumps(kept[:12_000])
        if fault == "gc":
            gc.collect()


def endless(loader: DataLoader[Tensor]):  # type: ignore[no-untyped-def]
    """Batches without end."""
    while True:
        yield from loader


def main() -> None:
    """Parse the arguments and train."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--fault", choices=FAULTS)
    parser.add_argument("--steps", type=int, default=24)
    options = parser.parse_args()
    train(options.fault, options.steps)


if __name__ == "__main__":
    main()
