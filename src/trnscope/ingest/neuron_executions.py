"""Executions on NeuronCores, each with the calls and the framework's rows that it came from.

A logical core of several physical cores has one row for each of these: they are one execution.
The chain (formats as of Neuron Explorer's schema 7.4.0): the framework's row carries the sequence
number; the runtime's calls carry it and a small number that counts executions of one model; the
device's row carries the model and the small number.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from trnscope.ingest.durations import LONG_NS
from trnscope.ingest.neuron_event import SystemEvent
from trnscope.ingest.neuron_words import EXECUTIONS, LAUNCHES, Origin, hardware_kind
from trnscope.model.kinds import SliceKind

_RANK_OF_LAUNCH = {name: rank for rank, name in enumerate(LAUNCHES)}
_WORK = (SliceKind.KERNEL, SliceKind.COLLECTIVE, SliceKind.MEMCPY)


@dataclass(eq=False)
class Execution:
    """One piece of device work. Numbers are places in the list of events."""

    rows: list[int]
    """Of the device: one, or one a physical core."""
    start_ns: int
    end_ns: int
    calls: list[int] = field(default_factory=list)
    """Of the runtime, in the order of the file."""
    framework: list[int] = field(default_factory=list)
    sequence: int | None = None
    """The runtime's sequence number, which the framework knows too."""
    inside: Execution | None = None
    """The execution of a NEFF that a collective is part of."""


_Key = tuple[object, ...]


class ExecutionFinder:
    """Finds the executions among the events of one profile."""

    def __init__(self, events: Sequence[SystemEvent]) -> None:
        self._events = events
        self._by_key: defaultdict[_Key, list[Execution]] = defaultdict(list)

    def find(self) -> list[Execution]:
        """All device work with its chain, by start."""
        found = self._merged()
        for execution in found:
            for key in self._keys(self._events[execution.rows[0]]):
                self._by_key[key].append(execution)
        self._add_calls()
        self._add_calls_by_time(found)
        self._add_framework(found)
        self._nest(found)
        return found

    # Device rows --------------------------------------------------------------------------

    def _merged(self) -> list[Execution]:
        groups: defaultdict[_Key, list[int]] = defaultdict(list)
        for at, event in enumerate(self._events):
            if event.origin is Origin.HARDWARE and event.dur_ns is not None:
                kind = hardware_kind(event.name)
                if kind in _WORK:
                    groups[self._group(event)].append(at)
        found = [one for rows in groups.values() for one in self._merge(rows)]
        return sorted(found, key=lambda one: (one.start_ns, one.rows[0]))

    @staticmethod
    def _group(event: SystemEvent) -> _Key:
        place = (event.instance, event.process, event.core)
        return (*place, event.name, event.model, event.execution, event.flow_ids)

    def _merge(self, rows: list[int]) -> Iterable[Execution]:
        """Rows of one group: those of different physical cores are one execution."""
        last: Execution | None = None
        cores: set[int | None] = set()
        for at in sorted(rows, key=lambda at: self._events[at].start_ns):
            event = self._events[at]
            end = event.start_ns + (event.dur_ns or 0)
            if last is not None and self._is_same(event, last, cores):
                last.rows.append(at)
                last.end_ns = max(last.end_ns, end)
                cores.add(event.physical_core)
                continue
            if last is not None:
                yield last
            last = Execution([at], event.start_ns, end)
            cores = {event.physical_core}
        if last is not None:
            yield last

    @staticmethod
    def _is_same(event: SystemEvent, last: Execution, cores: set[int | None]) -> bool:
        if event.physical_core in cores and event.physical_core is not None:
            return False
        is_numbered = bool(event.flow_ids) or event.execution is not None
        if is_numbered and event.physical_core is not None and None not in cores:
            # What starts minutes apart is not one execution, and 64 bits must hold all spans' sum.
            return event.start_ns - last.start_ns < LONG_NS
        return event.start_ns < last.end_ns

    # Chains -------------------------------------------------------------------------------

    @staticmethod
    def _keys(event: SystemEvent) -> Iterable[_Key]:
        """By what an event can be joined: the number counts within a model, else a core."""
        place = (event.instance, event.process)
        numbers = [*event.flow_ids, *([] if event.execution is None else [event.execution])]
        for number in dict.fromkeys(numbers):
            if event.model is not None:
                yield (*place, "model", event.model, number)
            yield (*place, "core", event.core, number)

    def _add_calls(self) -> None:
        by_sequence: dict[tuple[str, int], Execution] = {}
        later = []
        for at, event in enumerate(self._events):
            if event.origin is not Origin.RUNTIME:
                continue
            match = self._match(event)
            if match is None:
                later.append(at)
                continue
            execution, number = match
            execution.calls.append(at)
            others = [one for one in event.flow_ids if one != number]
            for one in others:
                by_sequence.setdefault((event.process, one), execution)
            if execution.sequence is None and others:
                execution.sequence = others[0]
        for at in later:
            event = self._events[at]
            for one in event.flow_ids:
                found = by_sequence.get((event.process, one))
                if found is not None:
                    found.calls.append(at)
                    break

    def _match(self, event: SystemEvent) -> tuple[Execution, int] | None:
        for key in self._keys(event):
            found = self._by_key.get(key)
            if found:
                number = key[-1]
                return _nearest(found, event), number if isinstance(number, int) else 0
        return None

    def _add_calls_by_time(self, found: list[Execution]) -> None:
        """Calls that carry no number launch the executions of their core that start in them."""
        linked = {at for one in found for at in one.calls}
        open_calls: defaultdict[_Key, list[int]] = defaultdict(list)
        for at, event in enumerate(self._events):
            is_call = event.origin is Origin.RUNTIME and event.name in _RANK_OF_LAUNCH
            if is_call and event.dur_ns is not None and at not in linked:
                open_calls[event.instance, event.process, event.core].append(at)
        for calls in open_calls.values():
            calls.sort(key=lambda at: self._events[at].start_ns)
        for one in found:
            event = self._events[one.rows[0]]
            calls = open_calls.get((event.instance, event.process, event.core), [])
            if not one.calls and calls and event.name in EXECUTIONS:
                one.calls = self._around(calls, event.start_ns)

    def _around(self, calls: list[int], time_ns: int) -> list[int]:
        """The last of the calls to begin by a time, if it had not ended then."""
        after = bisect_right(calls, time_ns, key=lambda at: self._events[at].start_ns)
        call = self._events[calls[after - 1]] if after else None
        if call is None or call.start_ns + (call.dur_ns or 0) < time_ns:
            return []
        return [calls[after - 1]]

    def _nest(self, found: list[Execution]) -> None:
        """Find the execution around each collective, on its core."""
        around: defaultdict[_Key, list[Execution]] = defaultdict(list)
        for one in found:
            event = self._events[one.rows[0]]
            key = (event.instance, event.process, event.core)
            if event.name in EXECUTIONS:
                around[key].append(one)
        for one in found:
            event = self._events[one.rows[0]]
            if event.name in EXECUTIONS or one.calls:
                continue
            candidates = around.get((event.instance, event.process, event.core), [])
            at = bisect_right(candidates, one.start_ns, key=lambda each: each.start_ns)
            if at and candidates[at - 1].end_ns >= one.end_ns:
                one.inside = candidates[at - 1]

    def _add_framework(self, found: list[Execution]) -> None:
        rows: defaultdict[int, list[int]] = defaultdict(list)
        for at, event in enumerate(self._events):
            if event.origin is Origin.FRAMEWORK:
                for one in event.flow_ids:
                    rows[one].append(at)
        if not rows:
            return
        for execution in found:
            event = self._events[execution.rows[0]]
            ids = [] if execution.sequence is None else [execution.sequence]
            for one in (*ids, *event.flow_ids):
                if one in rows:
                    execution.sequence = one
                    execution.framework = self._of_process(rows[one], event.process)
                    break

    def _of_process(self, rows: list[int], process: str) -> list[int]:
        """The rows of one process; all of them where none says that it is."""
        own = [at for at in rows if self._events[at].process == process]
        return own or rows


def _nearest(found: list[Execution], event: SystemEvent) -> Execution:
    """The execution that is nearest in time: a number may come again."""
    if len(found) == 1:
        return found[0]
    end = event.start_ns + (event.dur_ns or 0)
    return min(found, key=lambda one: max(one.start_ns - end, event.start_ns - one.end_ns, 0))


def launch_of(execution: Execution, events: Sequence[SystemEvent]) -> int | None:
    """The runtime call that enqueued an execution, or else its first call."""
    calls = execution.calls
    if not calls:
        return None
    return min(
        calls,
        key=lambda at: (
            _RANK_OF_LAUNCH.get(events[at].name, len(LAUNCHES)),
            events[at].start_ns,
        ),
    )
