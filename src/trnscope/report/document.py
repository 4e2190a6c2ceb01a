"""JSON documents as text: ASCII only, so that no name in them can act on a terminal."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np


def to_json_text(document: Any, *, indent: int | None = 1) -> str:
    """The document on indented lines, or on one without ``indent``.

    Every character outside printable ASCII is escaped, which loses nothing. A number that
    JSON cannot hold (NaN, infinity) becomes null.
    """
    return json.dumps(to_document(document), indent=indent, ensure_ascii=True, allow_nan=False)


def to_document(value: Any) -> Any:
    """The same of types that JSON has; a number that it cannot hold (NaN, infinity) is None."""
    if isinstance(value, dict):
        return {_well_formed(str(key)): to_document(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_document(item) for item in value]
    if isinstance(value, np.generic):
        return to_document(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return _well_formed(value) if isinstance(value, str) else value


def _well_formed(text: str) -> str:
    """Strict parsers refuse lone surrogates; the replacement character stands for each."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
