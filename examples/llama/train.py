"""Trains a small Llama on text, the way people first write it.

python train.py                                             # on the CPU
trnscope run train.py                                       # the same, recorded
trnscope run --device sim:trn2 train.py --device neuron     # on a simulated Trainium

Each option below is one edit of this file; none touches the model. `make demo-llama` lets
`trnscope explain` choose them one after another.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import time

import torch
from first_model import FirstLlama
from model import LlamaConfig
from text import Tokenizer, make_documents
from torch import nn
from torch.utils.data import DataLoader, Dataset

TOKENS, BATCH = 64, 8
NUM_DOCUMENTS, SENTENCES = 64, 1200


class Windows(Dataset[torch.Tensor]):
    """One sample: the next tokens of one document."""

    def __init__(self, documents: list[str], tokenizer: Tokenizer, tokenize_once: bool) -> None:
        self.documents = documents
        self.tokenizer = tokenizer
        self.tokens = [tokenizer(text) for text in documents] if tokenize_once else None

    def __len__(self) -> int:
        return len(self.documents)

    def __getitem__(self, index: int) -> torch.Tensor:
        """(TOKENS + 1,) int64."""
        if self.tokens is None:
            tokens = self.tokenizer(self.documents[index])
        else:
            tokens = self.tokens[index]
        start = 97 * index % (len(tokens) - TOKENS - 1)
        return torch.tensor(tokens[start : start + TOKENS + 1])


def accuracy(logits: torch.Tensor, targets: torch.Tensor) -> float:
    """Share of tokens that were guessed right."""
    pairs = zip(logits.argmax(-1).flatten().tolist(), targets.flatten().tolist(), strict=True)
    right = [guess == target for guess, target in pairs]
    return sum(right) / len(right)


def main() -> None:
    """Train, and say how long a step takes."""
    options = parse()
    torch.manual_seed(0)
    tokenizer = Tokenizer()
    documents = make_documents(NUM_DOCUMENTS, SENTENCES)
    data = Windows(documents, tokenizer, options.tokenize_once)
    loader = DataLoader(data, BATCH, shuffle=True)
    model = FirstLlama(LlamaConfig(4, 128, 4, 2, 384, tokenizer.vocabulary)).to(options.device)
    fused = True if options.fused_optimizer else None
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=fused)
    run = model
    if options.compile:
        run = torch.compile(model, backend=options.compile)

    times = []
    batches = itertools.chain.from_iterable(itertools.repeat(loader))
    before = time.perf_counter()
    for step, batch in enumerate(itertools.islice(batches, options.steps)):
        batch = batch.to(options.device)
        logits = run(batch[:, :-1])
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % options.log_every == 0:
            right = accuracy(logits, batch[:, 1:])
            print(f"step {step}: loss {loss.item():.4f}, {right:.1%} right", flush=True)
        now = time.perf_counter()
        times.append(now - before)
        before = now
    print(f"last loss {loss.item():.4f}")
    # Without the first quarter; a mean, so that a step which logs counts as often as it occurs.
    print(f"mean step {statistics.mean(times[len(times) // 4 :]) * 1e3:.1f} ms")


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cpu", help="cpu, cuda, neuron")
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument(
        "--tokenize-once", action="store_true", help="turn the text into tokens before training"
    )
    parser.add_argument(
        "--fused-optimizer", action="store_true", help="AdamW(..., fused=True): one op a step"
    )
    parser.add_argument("--log-every", type=int, default=1, help="steps from one line to the next")
    parser.add_argument("--compile", metavar="BACKEND", help="inductor, or neuron: torch.compile")
    return parser.parse_args()


if __name__ == "__main__":
    main()
