"""Profile three steps of a small training run on the CPU and keep them as the template trace.

``python -m benchmarks.record_template`` rewrites ``template.trace.json.xz``, which
``generate.py`` replays. It needs torch; the generator does not.
"""

from __future__ import annotations

import lzma
import queue
import re
import tempfile
import threading
from pathlib import Path

import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile, record_function, schedule

TEMPLATE = Path(__file__).with_name("template.trace.json.xz")
NUM_STEPS = 3
BATCH, TOKENS, WIDTH = 4, 32, 64


class Attention(nn.Module):
    """Single-head self-attention over (batch, tokens, width)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Same shape as ``x``."""
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
        out: torch.Tensor = self.out(scores.softmax(dim=-1) @ v)
        return out


class Block(nn.Module):
    """Attention, a depthwise convolution over the tokens, and an MLP, each with a residual."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(3))
        self.attention = Attention(width)
        self.conv = nn.Conv1d(width, width, kernel_size=3, padding=1, groups=width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Dropout(0.1), nn.Linear(4 * width, width)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Same shape as ``x``."""
        x = x + self.attention(self.norms[0](x))
        x = x + self.conv(self.norms[1](x).transpose(1, 2)).transpose(1, 2)
        out: torch.Tensor = x + self.mlp(self.norms[2](x))
        return out


def load_batches(batches: queue.Queue[torch.Tensor | None], num_batches: int) -> None:
    """Fill the queue from another thread, as a prefetching loader does."""
    for _ in range(num_batches):
        with record_function("load_batch"):
            raw = torch.randn(BATCH, TOKENS, WIDTH)
            batches.put((raw - raw.mean()) / (raw.std() + 1e-5))
    batches.put(None)


def train(model: nn.Module, optimizer: torch.optim.Optimizer, batch: torch.Tensor) -> float:
    """One training step; returns the loss."""
    optimizer.zero_grad()
    with record_function("forward"):
        loss = nn.functional.mse_loss(model(batch), batch)
    torch.autograd.backward(loss)
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    return loss.item()


def record(path: Path) -> None:
    """Write the Kineto trace of ``NUM_STEPS`` steps (shapes, stacks and memory) to ``path``."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = nn.Sequential(*(Block(WIDTH) for _ in range(2)))
    optimizer = torch.optim.AdamW(model.parameters())
    batches: queue.Queue[torch.Tensor | None] = queue.Queue(maxsize=1)
    loader = threading.Thread(target=load_batches, args=(batches, NUM_STEPS + 2))
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=1, warmup=1, active=NUM_STEPS, repeat=1),
        with_stack=True,
        record_shapes=True,
        profile_memory=True,
    ) as profiler:
        loader.start()
        while (batch := batches.get()) is not None:
            train(model, optimizer, batch)
            profiler.step()
        loader.join()
    profiler.export_chrome_trace(str(path))


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "template.trace.json"
        record(path)
        text = path.read_text()
    text = re.sub(r'"host_name": "[^"]*"', '"host_name": "bench"', text)
    text = re.sub(r'"trace_id": "[^"]*"', '"trace_id": "' + "0" * 32 + '"', text)
    text = re.sub(r'"traceName": "[^"]*"', '"traceName": "template.trace.json"', text)
    TEMPLATE.write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))
    print(f"{TEMPLATE.name}: {len(text)} bytes of JSON, {TEMPLATE.stat().st_size} bytes packed")


if __name__ == "__main__":
    main()
