"""The Llama of model.py as people first write it: norm, softmax and activation op by op."""

from __future__ import annotations

import math

import model
import torch
from model import LlamaConfig, rotate, rotation_of
from torch import nn


class RMSNorm(nn.Module):
    """Root mean square norm, from the formula in the paper."""

    def __init__(self, width: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.eps = eps

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Any shape whose last dimension is the width, to the same."""
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight


class Attention(model.Attention):
    """Causal attention, from the formula in the paper."""

    def forward(self, x: torch.Tensor, rotation: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
        """(batch, tokens, width) to the same."""
        tokens = x.shape[1]
        query = rotate(self._heads(self.query(x)), rotation)
        key = rotate(self._heads(self.key(x)), rotation)
        value = self._heads(self.value(x))
        shared = self.config.num_heads // self.config.num_kv_heads
        key, value = (x.repeat_interleave(shared, dim=1) for x in (key, value))
        scores = query @ key.transpose(-2, -1) / math.sqrt(self.config.head_width)
        mask = torch.full((tokens, tokens), -math.inf, device=x.device, dtype=x.dtype).triu(1)
        mixed = torch.softmax(scores + mask, dim=-1) @ value
        return self.out(mixed.transpose(1, 2).flatten(2))


class SwiGLU(model.SwiGLU):
    """The feed-forward part, with its activation written out."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch, tokens, width) to the same."""
        gate = self.gate(x)
        return self.down(gate * torch.sigmoid(gate) * self.up(x))


class Block(nn.Module):
    """One layer: attention, then feed-forward, each around a residual."""

    def __init__(self, config: LlamaConfig) -> None:
        super().__init__()
        self.attention_norm = RMSNorm(config.width, config.norm_eps)
        self.attention = Attention(config)
        self.feed_forward_norm = RMSNorm(config.width, config.norm_eps)
        self.feed_forward = SwiGLU(config)

    def forward(self, x: torch.Tensor, rotation: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
        """(batch, tokens, width) to the same."""
        x = x + self.attention(self.attention_norm(x), rotation)
        return x + self.feed_forward(self.feed_forward_norm(x))


class FirstLlama(nn.Module):
    """Tokens to the logits of the next ones."""

    def __init__(self, config: LlamaConfig) -> None:
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(config.vocabulary, config.width)
        self.layers = nn.ModuleList(Block(config) for _ in range(config.num_layers))
        self.norm = RMSNorm(config.width, config.norm_eps)
        self.output = nn.Linear(config.width, config.vocabulary, bias=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """(batch, tokens) to (batch, tokens, vocabulary)."""
        x = self.embedding(tokens)
        rotation = rotation_of(tokens.shape[1], self.config, x)
        for layer in self.layers:
            x = layer(x, rotation)
        return self.output(self.norm(x))
