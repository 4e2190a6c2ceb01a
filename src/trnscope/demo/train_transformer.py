"""Trains a small transformer to continue text, and wastes most of its time on its input.

The waste is of a common kind. Each sample is turned from text into tokens when it is asked
for, a whole document character by character in Python, of which the end is kept; the batch is
put together sample by sample; and all of that happens on the main thread (``num_workers=0``),
so that the model waits for every batch. The loss is fetched with ``.item()`` each step besides.

``--pretokenized`` does the same training with the text turned into tokens once.
"""

from __future__ import annotations

import argparse
import itertools
import random

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

SENTENCE = (
    "the step took longer than it should because the device was idle while the host "
    "prepared a batch which nobody had thought of measuring before"
)
CHARACTERS = " abcdefghijklmnopqrstuvwxyz"
CONTEXT = 64
NUM_DOCUMENTS = 128
WORDS_PER_DOCUMENT = 8000
PAD = 0


def make_documents(seed: int) -> list[str]:
    """Random words, the same ones for the same seed."""
    words = random.Random(seed)
    vocabulary = SENTENCE.split()
    return [" ".join(words.choices(vocabulary, k=WORDS_PER_DOCUMENT)) for _ in range(NUM_DOCUMENTS)]


def tokenize(text: str) -> list[int]:
    """Text to token numbers, the slow way: one character at a time, in Python."""
    tokens = []
    for character in text.lower():
        if character.isspace():
            character = " "
        position = CHARACTERS.find(character)
        tokens.append(position + 1 if position >= 0 else PAD)
    return tokens


class TextDataset(Dataset[list[int]]):
    """One sample: the last ``CONTEXT + 1`` tokens of a document."""

    def __init__(self, documents: list[str], pretokenized: bool) -> None:
        self.documents = documents
        self.tokens = [tokenize(text) for text in documents] if pretokenized else None

    def __len__(self) -> int:
        return len(self.documents)

    def __getitem__(self, index: int) -> list[int]:
        tokens = tokenize(self.documents[index]) if self.tokens is None else self.tokens[index]
        return tokens[-(CONTEXT + 1) :]


def collate(samples: list[list[int]]) -> torch.Tensor:
    """Pad to one length, sample by sample: (batch, CONTEXT + 1) int64."""
    rows = []
    for tokens in samples:
        padded = tokens + [PAD] * (CONTEXT + 1 - len(tokens))
        rows.append(torch.tensor(padded))
    return torch.stack(rows)


class SmallTransformer(nn.Module):
    """A decoder of a few layers over characters."""

    def __init__(self, width: int = 128, num_layers: int = 2, num_heads: int = 4) -> None:
        super().__init__()
        self.embed = nn.Embedding(len(CHARACTERS) + 1, width)
        self.position = nn.Parameter(torch.zeros(CONTEXT, width))
        layer = nn.TransformerEncoderLayer(
            width, num_heads, 4 * width, dropout=0.0, batch_first=True, norm_first=True
        )
        self.layers = nn.TransformerEncoder(layer, num_layers, enable_nested_tensor=False)
        self.head = nn.Linear(width, len(CHARACTERS) + 1)
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(CONTEXT))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Tokens (batch, CONTEXT) to the next one's scores (batch, CONTEXT, vocabulary)."""
        hidden = self.embed(tokens) + self.position
        scores: torch.Tensor = self.head(self.layers(hidden, mask=self.mask, is_causal=True))
        return scores


def train(num_steps: int, batch_size: int, pretokenized: bool) -> None:
    """Train for ``num_steps`` steps, as many passes over the documents as that takes."""
    torch.manual_seed(0)
    torch.set_num_threads(1)  # as quick on a busy machine as on an idle one
    dataset = TextDataset(make_documents(seed=0), pretokenized)
    loader = DataLoader(dataset, batch_size, shuffle=True, num_workers=0, collate_fn=collate)
    model = SmallTransformer()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    batches = itertools.chain.from_iterable(itertools.repeat(loader))
    for step, batch in enumerate(itertools.islice(batches, num_steps), start=1):
        scores = model(batch[:, :-1])
        loss = nn.functional.cross_entropy(scores.flatten(0, 1), batch[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        loss_value = loss.item()
        if step % 10 == 0:
            print(f"step {step:3d}  loss {loss_value:.3f}", flush=True)


def main() -> None:
    """Parse the arguments and train."""
    parser = argparse.ArgumentParser(description="Train a small transformer on the CPU.")
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument(
        "--pretokenized", action="store_true", help="turn the text into tokens once, not per step"
    )
    options = parser.parse_args()
    train(options.steps, options.batch_size, options.pretokenized)


if __name__ == "__main__":
    main()
