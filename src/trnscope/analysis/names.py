"""Finds slices by what their names look like, trying each distinct name once."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from trnscope import _native
from trnscope.store.reader import Trace
from trnscope.store.strings import Strings
from trnscope.store.tables import U8, U32, Bool


def slices_named(trace: Trace, ids: U32, wanted: Callable[[str], object]) -> U32:
    """The slices among ``ids`` whose name ``wanted`` returns something true for."""
    if ids.size == 0:
        return ids
    name = trace.slices.name
    present = np.zeros(len(trace.strings), np.bool_)
    present[name[ids]] = True
    return ids[_matching(trace.strings, present, wanted)[name[ids]]]


def slices_of_kind_named(
    trace: Trace, kinds: Sequence[int], wanted: Callable[[str], object], words: Sequence[str]
) -> U32:
    """The slices of these kinds whose name ``wanted`` returns something true for, rising.

    Only names that hold one of ``words``, in any case, are tried: a trace of a server has
    millions.
    """
    slices = trace.slices
    is_kind = np.zeros(256, np.uint8)
    is_kind[list(kinds)] = 1
    present = _native.names_present(slices.name, slices.kind, is_kind, len(trace.strings))
    matches = _matching(trace.strings, trace.strings.with_words(words, present), wanted)
    if not matches.any():
        return np.empty(0, np.uint32)
    return _native.find_names(slices.name, slices.kind, is_kind, matches.view(np.uint8))


def _matching(strings: Strings, present: Bool | U8, wanted: Callable[[str], object]) -> Bool:
    """Which strings are present and wanted."""
    used = np.flatnonzero(present)
    matches = np.zeros(len(strings), np.bool_)
    matches[used] = [bool(wanted(text)) for text in strings.take(used.tolist())]
    return matches
