"""Keeps a document to a size, and says what was left out."""

from __future__ import annotations

import json
from typing import Any

MAX_TEXT = 2_000
"""Characters of one text."""

Json = dict[str, Any]


def bounded(document: Json, rows: int, max_characters: int | None = None) -> Json:
    """The document with at most so many entries in each list.

    ``left_out`` says for each list, by its path, how many entries are missing. Where the JSON text
    would still be too long, lists are halved until it is not. Long texts end with an ellipsis.
    """
    while True:
        left_out: dict[str, int] = {}
        cut = _cut(document, rows, "", left_out)
        answer: Json = {**cut, "left_out": left_out} if left_out else cut
        is_short = max_characters is None or len(json.dumps(answer)) <= max_characters
        if rows <= 1 or is_short:
            return answer
        rows //= 2


def _cut(value: Any, rows: int, path: str, left_out: dict[str, int]) -> Any:
    if isinstance(value, dict):
        return {
            key: _cut(item, rows, f"{path}.{key}" if path else key, left_out)
            for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        if len(value) > rows:
            left_out[path] = left_out.get(path, 0) + len(value) - rows
        return [_cut(item, rows, f"{path}[]", left_out) for item in value[:rows]]
    return cut_text(value) if isinstance(value, str) else value


def cut_text(text: str) -> str:
    """The text, or its beginning and an ellipsis."""
    return text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 1] + "…"
