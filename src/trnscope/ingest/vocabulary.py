"""Looks the meaning of categories and names up by string id, each text once."""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from trnscope.ingest.kineto import Place, is_kineto_category, rule_of
from trnscope.model.kinds import DeviceKind
from trnscope.store.tables import U8, U16, U32, Bool
from trnscope.store.writer import TraceWriter

Text = Callable[[int], str]
"""Gives the text of a string id."""

UNKNOWN_NAME = 0xFF
_MAX_CATEGORIES = 0xFFFF
_UNKNOWN = 0xFFFF


class Naming(IntEnum):
    """What the name adds to the category."""

    NOTHING = 0
    KERNEL = 1
    """Computing or communication."""
    WORK = 2
    """Computing, communication, a copy or a fill."""
    OLD_OPERATOR = 3
    """An operator or an annotation."""
    RUNTIME = 4
    """Whose runtime it is."""
    PROFILER = 5
    """Whose profiler it is."""


_NAMING: dict[str, Naming] = {
    "kernel": Naming.KERNEL,
    "mtia_ccp_events": Naming.WORK,
    "operator": Naming.OLD_OPERATOR,
    "runtime": Naming.RUNTIME,
    "cuda_runtime": Naming.RUNTIME,
    "cuda_driver": Naming.RUNTIME,
    "privateuse1_runtime": Naming.RUNTIME,
    "trace": Naming.PROFILER,
}


class Placing(IntEnum):
    """How the native pass finds the kind of a category's slices; see native/place_rows.h."""

    SPECIAL = 0
    """Not there: the category needs more than tables."""
    BY_CATEGORY = 1
    NAME_SEEN = 2
    """By category; but each name must have been looked at once."""
    BY_NAME = 3


_PLACING = {
    Naming.NOTHING: Placing.BY_CATEGORY,
    Naming.RUNTIME: Placing.NAME_SEEN,
    Naming.OLD_OPERATOR: Placing.BY_NAME,
}


class CategoryTable:
    """Categories of the file: :meth:`of` gives numbers, which the other columns are by."""

    def __init__(self, text: Text, writer: TraceWriter) -> None:
        self._text = text
        self._writer = writer
        self.number = np.zeros(0, np.uint16)
        """By string id; 0xFFFF where a category was not met yet."""
        self.kind = np.zeros(0, np.uint8)
        self.place = np.zeros(0, np.uint8)
        self.naming = np.zeros(0, np.uint8)
        self.placing = np.zeros(0, np.uint8)
        self.evidence: set[DeviceKind] = set()
        self.has_kineto = False

    def of(self, categories: U32) -> U16:
        """The writer's numbers of categories given by string id."""
        top = int(categories.max()) + 1 if categories.size else 0
        if top > self.number.size:
            known = self.number.size
            self.number = _grown(self.number, top)
            self.number[known:] = _UNKNOWN
        numbers = self.number[categories]
        if numbers.max(initial=0) == _UNKNOWN:
            for one in np.unique(categories[numbers == _UNKNOWN]).tolist():
                self.number[one] = self._register(self._text(one))
            numbers = self.number[categories]
        return numbers

    def _register(self, text: str) -> int:
        if self.kind.size >= _MAX_CATEGORIES:
            text = ""  # more kinds of category than the store can tell apart
        number = self._writer.category(text)
        if number == self.kind.size:
            rule = rule_of(text)
            self.kind = np.append(self.kind, np.uint8(rule.kind))
            self.place = np.append(self.place, np.uint8(rule.place))
            naming = _NAMING.get(text.lower(), Naming.NOTHING)
            self.naming = np.append(self.naming, np.uint8(naming))
            on_host = rule.place is Place.HOST
            placing = _PLACING.get(naming, Placing.SPECIAL) if on_host else Placing.SPECIAL
            self.placing = np.append(self.placing, np.uint8(placing))
            self.has_kineto |= is_kineto_category(text)
            if rule.device_kind is not None:
                self.evidence.add(rule.device_kind)
        return number

    def is_instant(self, categories: U32) -> Bool:
        """Where a category holds points in time, whatever the phase."""
        number = self.of(categories)  # registers new ones, before the table is looked at
        return np.asarray(self.place[number] == Place.INSTANT)


class NameTable:
    """One small number (below 255) for each name, computed once per distinct name."""

    def __init__(self, text: Text, meaning: Callable[[str], int]) -> None:
        self._text = text
        self._meaning = meaning
        self.table = np.empty(0, np.uint8)
        """By string id; ``UNKNOWN_NAME`` where a name was not looked at yet."""

    def of(self, names: U32) -> U8:
        """The numbers of names given by string id."""
        top = int(names.max()) + 1 if names.size else 0
        if top > self.table.size:
            known = self.table.size
            self.table = _grown(self.table, top)
            self.table[known:] = UNKNOWN_NAME
        numbers = self.table[names]
        is_new = numbers == UNKNOWN_NAME
        if is_new.any():
            for one in np.unique(names[is_new]).tolist():
                self.table[one] = self._meaning(self._text(one))
            numbers = self.table[names]
        return numbers


def _grown(values: npt.NDArray[Any], size: int) -> npt.NDArray[Any]:
    grown = np.zeros(max(size, 2 * values.size), values.dtype)
    grown[: values.size] = values
    return grown
