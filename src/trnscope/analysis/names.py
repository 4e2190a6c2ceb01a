"""Finds slices by what their names look like, trying each distinct name once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from trnscope.store.reader import Trace
from trnscope.store.tables import U32


def slices_named(trace: Trace, ids: U32, wanted: Callable[[str], object]) -> U32:
    """The slices among ``ids`` whose name ``wanted`` returns something true for."""
    if ids.size == 0:
        return ids
    name = trace.slices.name
    present = np.zeros(len(trace.strings), np.bool_)
    present[name[ids]] = True
    distinct = np.flatnonzero(present)
    matches = np.zeros(len(trace.strings), np.bool_)
    matches[distinct] = [bool(wanted(text)) for text in trace.strings.take(distinct.tolist())]
    return ids[matches[name[ids]]]
