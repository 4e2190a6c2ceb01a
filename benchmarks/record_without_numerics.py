"""How long it takes to record a large Llama's step without numerics.

``python -m benchmarks.record_without_numerics``: 32 layers of the width of Llama-3-8B, one sequence
of 4,096 tokens in bfloat16, forward and backward. Nothing is computed; the goal is 60 s. Ends with
status 3 where a step takes longer.
"""

from __future__ import annotations

import resource
import sys
import time

import torch
from torch import nn
from torch.nn import functional

import trnscope.sim

LAYERS, WIDTH, HEADS, KV_HEADS, HIDDEN, VOCABULARY = 32, 4096, 32, 8, 14336, 128256
TOKENS = 4096
GOAL_S = 60.0
GATE_FAILED = 3


class Layer(nn.Module):
    """Attention with fewer heads for keys and values, then the gated feed-forward part."""

    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.RMSNorm(WIDTH), nn.RMSNorm(WIDTH)
        self.q, self.o = nn.Linear(WIDTH, WIDTH, bias=False), nn.Linear(WIDTH, WIDTH, bias=False)
        self.k = nn.Linear(WIDTH, WIDTH * KV_HEADS // HEADS, bias=False)
        self.v = nn.Linear(WIDTH, WIDTH * KV_HEADS // HEADS, bias=False)
        self.gate, self.up = (nn.Linear(WIDTH, HIDDEN, bias=False) for _ in range(2))
        self.down = nn.Linear(HIDDEN, WIDTH, bias=False)

    def attend(self, x: torch.Tensor) -> torch.Tensor:
        """The attention part."""
        shape = (x.shape[0], x.shape[1], -1, WIDTH // HEADS)
        q, k, v = (m(x).view(shape).transpose(1, 2) for m in (self.q, self.k, self.v))
        k, v = (t.repeat_interleave(HEADS // KV_HEADS, dim=1) for t in (k, v))
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.o(y.transpose(1, 2).reshape(x.shape))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Both parts, each around its residual."""
        x = x + self.attend(self.norm1(x))
        h = self.norm2(x)
        return x + self.down(functional.silu(self.gate(h)) * self.up(h))


class Llama(nn.Module):
    """The whole model."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, WIDTH)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.norm = nn.RMSNorm(WIDTH)
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Logits of each position."""
        x = self.embed(tokens)
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x))


def step(model: nn.Module, tokens: torch.Tensor) -> None:
    logits = model(tokens)
    functional.cross_entropy(logits.flatten(0, 1), tokens.flatten()).backward()
    model.zero_grad()


def main() -> int:
    """Record two steps; the exit status."""
    # Weights and activations of a step do not fit the HBM of one core; a larger instance's does
    # not either, so the whole model lies on a core of unlimited memory: only time is asked for.
    device = trnscope.sim.activate("trn2.48xlarge", numerics=False)
    device.extension.set_capacity(1 << 42)
    with torch.device("neuron"):
        model = Llama().to(torch.bfloat16)
    tokens = torch.zeros(1, TOKENS, dtype=torch.long, device="neuron")
    longest = 0.0
    for name in ("first", "second"):
        before = device.extension.num_launches()
        start = time.perf_counter()
        step(model, tokens)
        taken = time.perf_counter() - start
        longest = max(longest, taken)
        launches = device.extension.num_launches() - before
        print(f"{name} step: {taken:.2f} s of real time for {launches} executions")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    word = "met" if longest <= GOAL_S else "MISSED"
    print(f"peak memory of the process: {peak:.2f} GB; goal: at most {GOAL_S:g} s a step: {word}")
    return 0 if longest <= GOAL_S else GATE_FAILED


if __name__ == "__main__":
    sys.exit(main())
