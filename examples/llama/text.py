"""Text to learn from: documents of made-up sentences, and a tokenizer that knows their words."""

from __future__ import annotations

import random
import re

SUBJECTS = ("the compiler", "a kernel", "the loader", "the scheduler", "one rank", "a tensor")
VERBS = ("waits for", "reads", "writes", "fills", "launches", "copies", "drops", "repeats")
OBJECTS = ("the queue", "a batch", "every gradient", "its neighbour", "the last page", "the ring")
ENDINGS = ("again", "at once", "in turn", "before the step ends", "while nobody looks")
WORD = re.compile(r"[a-z]+|[^\sa-z]")
UNKNOWN = 0


def make_documents(number: int, sentences: int, seed: int = 0) -> list[str]:
    """Documents of so many sentences each, the same ones for the same seed."""
    random_words = random.Random(seed)
    return [" ".join(make_sentence(random_words) for _ in range(sentences)) for _ in range(number)]


def make_sentence(random_words: random.Random) -> str:
    """Subject, verb, object, and how."""
    parts = [random_words.choice(words) for words in (SUBJECTS, VERBS, OBJECTS, ENDINGS)]
    return " ".join(parts).capitalize() + "."


class Tokenizer:
    """One number a word or mark."""

    def __init__(self) -> None:
        words = {word for text in (*SUBJECTS, *VERBS, *OBJECTS, *ENDINGS) for word in text.split()}
        self.numbers = {word: number for number, word in enumerate(sorted(words), start=1)}
        self.numbers["."] = len(self.numbers) + 1

    @property
    def vocabulary(self) -> int:
        """How many numbers there are."""
        return len(self.numbers) + 1

    def __call__(self, text: str) -> list[int]:
        """The numbers of a text, one after another."""
        return [self.numbers.get(word, UNKNOWN) for word in WORD.findall(text.lower())]
