"""Trains a Llama for a few steps on random tokens.

python train_step.py                                    # small, on the CPU
trnscope run --device sim:trn2 train_step.py --device neuron
trnscope estimate train_step.py --preset 8b --device neuron --batch 1 --tokens 4096
"""

from __future__ import annotations

import argparse

import torch
from model import PRESETS, Llama
from torch.nn import functional

SEED = 0


def main() -> None:
    """Train and print each step's loss."""
    options = parse()
    torch.manual_seed(SEED)
    with torch.device("cpu" if options.preset == "small" else options.device):
        # The small model gets the same numbers on every device; a large one has no room elsewhere.
        model = Llama(PRESETS[options.preset], recompute=options.recompute)
    model = model.to(options.device, getattr(torch, options.dtype))
    optimizer = torch.optim.AdamW(model.parameters(), lr=options.learning_rate)
    shape = (options.batch, options.tokens + 1)
    tokens = torch.randint(PRESETS[options.preset].vocabulary, shape).to(options.device)

    for step in range(options.steps):
        logits = model(tokens[:, :-1])
        loss = functional.cross_entropy(logits.flatten(0, 1).float(), tokens[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        print(f"step {step}: loss {loss.item():.6f}", flush=True)


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--preset", choices=list(PRESETS), default="small")
    parser.add_argument("--device", default="cpu", help="cpu, cuda, neuron")
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--batch", type=int, default=2)
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--learning-rate", type=float, default=1e-3)
    parser.add_argument("--recompute", action="store_true", help="keep no activations of layers")
    return parser.parse_args()


if __name__ == "__main__":
    main()
