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


class CategoryTable:
    """Categories of the file: :meth:`of` gives numbers, which the other columns are by."""

    def __init__(self, text: Text, writer: TraceWriter) -> None:
        self._text = text
        self._writer = writer
        self._number = np.zeros(0, np.uint16)
        self.kind = np.zeros(0, np.uint8)
        self.place = np.zeros(0, np.uint8)
        self.naming = np.zeros(0, np.uint8)
        self.evidence: set[DeviceKind] = set()
        self.has_kineto = False

    def of(self, categories: U32) -> U16:
        """The writer's numbers of categories given by string id."""
        top = int(categories.max()) + 1 if categories.size else 0
        if top > self._number.size:
            known = self._number.size
            self._number = _grown(self._number, top)
            self._number[known:] = _UNKNOWN
        numbers = self._number[categories]
        if numbers.max(initial=0) == _UNKNOWN:
            for one in np.unique(categories[numbers == _UNKNOWN]).tolist():
                self._number[one] = self._register(self._text(one))
            numbers = self._number[categories]
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
            self.has_kineto |= is_kineto_category(text)
            if rule.device_kind is not None:
                self.evidence.add(rule.device_kind)
        return number

    def is_instant(self, categories: U32) -> Bool:
        """Where a category holds points in time, whatever the phase."""
        number = self.of(categories)  # registers new ones, before the table is looked at
        return np.asarray(self.place[number] == Place.INSTANT)


class NameTable:
    """One small number for each name, computed once per distinct name."""

    def __init__(self, text: Text, meaning: Callable[[str], int]) -> None:
        self._text = text
        self._meaning = meaning
        self._number = np.zeros(0, np.uint8)
        self._is_known = np.zeros(0, np.bool_)

    def of(self, names: U32) -> U8:
        """The numbers of names given by string id."""
        top = int(names.max()) + 1 if names.size else 0
        if top > self._number.size:
            self._number = _grown(self._number, top)
            self._is_known = _grown(self._is_known, top)
        known = self._is_known[names]
        if not known.all():
            for one in np.unique(names[~known]).tolist():
                self._number[one] = self._meaning(self._text(one))
                self._is_known[one] = True
        return self._number[names]


def _grown(values: npt.NDArray[Any], size: int) -> npt.NDArray[Any]:
    grown = np.zeros(max(size, 2 * values.size), values.dtype)
    grown[: values.size] = values
    return grown
