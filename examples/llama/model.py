"""Llama, short enough to read: RMSNorm, rotary positions, grouped-query attention, SwiGLU.

Architecture: Touvron et al., 2023 (LLaMA); sizes of the presets: Meta's model cards of
Llama 3.1 8B and Llama 3.2 1B.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint


@dataclass(frozen=True)
class LlamaConfig:
    """What decides the shapes."""

    num_layers: int
    width: int
    num_heads: int
    num_kv_heads: int
    """Heads of keys and values; each is shared by ``num_heads / num_kv_heads`` query heads."""
    hidden: int
    """Width inside the SwiGLU."""
    vocabulary: int
    tied: bool = False
    """Whether the output layer is the embedding."""
    rope_theta: float = 500_000.0
    norm_eps: float = 1e-5

    @property
    def head_width(self) -> int:
        """Numbers a head has for each token."""
        return self.width // self.num_heads


PRESETS = {
    "small": LlamaConfig(4, 128, 4, 2, 384, 512),
    "1b": LlamaConfig(16, 2048, 32, 8, 8192, 128_256, tied=True),
    "8b": LlamaConfig(32, 4096, 32, 8, 14_336, 128_256),
}


class Attention(nn.Module):
    """Causal attention, with fewer heads of keys and values than of queries."""

    def __init__(self, config: LlamaConfig) -> None:
        super().__init__()
        self.config = config
        kv_width = config.num_kv_heads * config.head_width
        self.query = nn.Linear(config.width, config.width, bias=False)
        self.key = nn.Linear(config.width, kv_width, bias=False)
        self.value = nn.Linear(config.width, kv_width, bias=False)
        self.out = nn.Linear(config.width, config.width, bias=False)

    def forward(self, x: torch.Tensor, rotation: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
        """(batch, tokens, width) to the same."""
        query = rotate(self._heads(self.query(x)), rotation)
        key = rotate(self._heads(self.key(x)), rotation)
        value = self._heads(self.value(x))
        # Fused attention needs as many heads of keys and values as of queries.
        shared = self.config.num_heads // self.config.num_kv_heads
        key, value = (x.repeat_interleave(shared, dim=1) for x in (key, value))
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        return self.out(mixed.transpose(1, 2).flatten(2))

    def _heads(self, x: torch.Tensor) -> torch.Tensor:
        batch, tokens, _ = x.shape
        return x.view(batch, tokens, -1, self.config.head_width).transpose(1, 2)


class SwiGLU(nn.Module):
    """The feed-forward part, with a gate."""

    def __init__(self, config: LlamaConfig) -> None:
        super().__init__()
        self.gate = nn.Linear(config.width, config.hidden, bias=False)
        self.up = nn.Linear(config.width, config.hidden, bias=False)
        self.down = nn.Linear(config.hidden, config.width, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch, tokens, width) to the same."""
        return self.down(functional.silu(self.gate(x)) * self.up(x))


class Block(nn.Module):
    """One layer: attention, then feed-forward, each around a residual."""

    def __init__(self, config: LlamaConfig) -> None:
        super().__init__()
        self.attention_norm = nn.RMSNorm(config.width, config.norm_eps)
        self.attention = Attention(config)
        self.feed_forward_norm = nn.RMSNorm(config.width, config.norm_eps)
        self.feed_forward = SwiGLU(config)

    def forward(self, x: torch.Tensor, rotation: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
        """(batch, tokens, width) to the same."""
        x = x + self.attention(self.attention_norm(x), rotation)
        return x + self.feed_forward(self.feed_forward_norm(x))


class Llama(nn.Module):
    """Tokens to the logits of the next ones."""

    def __init__(self, config: LlamaConfig, *, recompute: bool = False) -> None:
        """``recompute``: keep only each layer's input for the backward pass."""
        super().__init__()
        self.config = config
        self.recompute = recompute
        self.embedding = nn.Embedding(config.vocabulary, config.width)
        self.layers = nn.ModuleList(Block(config) for _ in range(config.num_layers))
        self.norm = nn.RMSNorm(config.width, config.norm_eps)
        self.output = nn.Linear(config.width, config.vocabulary, bias=False)
        if config.tied:
            self.output.weight = self.embedding.weight

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """(batch, tokens) to (batch, tokens, vocabulary)."""
        x = self.embedding(tokens)
        rotation = rotation_of(tokens.shape[1], self.config, x)
        for layer in self.layers:
            if self.recompute:
                x = checkpoint(layer, x, rotation, use_reentrant=False)
            else:
                x = layer(x, rotation)
        return self.output(self.norm(x))


def rotation_of(
    num_tokens: int, config: LlamaConfig, like: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Cosine and sine of each position's angles: (tokens, head width), as ``like`` is stored."""
    half = config.head_width // 2
    frequencies = config.rope_theta ** (-torch.arange(half, device=like.device) / half)
    positions = torch.arange(num_tokens, device=like.device)
    angles = torch.outer(positions, frequencies).repeat(1, 2)
    return angles.cos().to(like.dtype), angles.sin().to(like.dtype)


def rotate(x: torch.Tensor, rotation: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
    """Turn each pair (first half, second half) of a head's numbers by its position's angle."""
    cosine, sine = rotation
    first, second = x.chunk(2, dim=-1)
    return x * cosine + torch.cat((-second, first), dim=-1) * sine
