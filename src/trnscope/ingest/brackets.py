"""Begin and end events (B/E, async b/e and S/F) become slices, over all segments of a file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from trnscope.ingest.findings import Findings, describe_event
from trnscope.ingest.pairing import Pairs, pair_brackets
from trnscope.ingest.rows import Rows, Segment, concatenate, rows_of
from trnscope.ingest.vocabulary import Text

Group = Callable[[Segment, npt.NDArray[Any]], npt.NDArray[np.int64]]


class BracketReader:
    """Pairs begins and ends of one family of phases; open begins wait for later segments."""

    def __init__(self, text: Text, findings: Findings, code_prefix: str) -> None:
        self._text = text
        self._findings = findings
        self._code = code_prefix
        self._open: Rows | None = None
        self._open_group = np.empty(0, np.int64)

    def close(
        self, segment: Segment, at: npt.NDArray[Any], is_begin: npt.NDArray[np.bool_], group: Any
    ) -> Rows:
        """The slices that these events close; ``group`` holds a number for each event."""
        rows = rows_of(segment, at)
        if self._open is not None:
            rows = concatenate((self._open, rows))
            is_begin = np.append(np.ones(len(self._open), np.bool_), is_begin)
            group = np.append(self._open_group, group)
        pairs = pair_brackets(group, rows.start_ns, is_begin)
        self._note_unmatched(rows, pairs)
        slices = _joined(rows, pairs)
        self._open = rows.take(pairs.open_begins) if pairs.open_begins.size else None
        self._open_group = group[pairs.open_begins]
        return slices

    def _note_unmatched(self, rows: Rows, pairs: Pairs) -> None:
        if pairs.unmatched_ends.size:
            self._note("end-without-begin", rows, pairs.unmatched_ends)

    def _note(self, code: str, rows: Rows, at: npt.NDArray[Any]) -> None:
        first = at[0]
        example = describe_event(self._text(int(rows.name[first])), int(rows.start_ns[first]))
        offset = int(rows.args_offset[first]) if rows.args_length[first] else None
        self._findings.note(self._code + code, int(at.size), example, offset)

    def left_open(self) -> Rows | None:
        """Begins that nothing closed, once all segments were read; they are noted."""
        if self._open is not None:
            self._note("begin-without-end", self._open, np.arange(len(self._open)))
        return self._open


def _joined(rows: Rows, pairs: Pairs) -> Rows:
    """One slice per pair: the begin's, but for args that only the end has."""
    begun = rows.take(pairs.begins)
    bare = begun.args_length == 0
    return Rows(
        begun.track,
        begun.category,
        begun.name,
        begun.start_ns,
        rows.start_ns[pairs.ends] - begun.start_ns,
        np.where(bare, rows.args_offset[pairs.ends], begun.args_offset),
        np.where(bare, rows.args_length[pairs.ends], begun.args_length),
        begun.lifted,
    )
