"""What a rule is given: one trace, its typical steps, and ways to find and add up slices."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property, wraps
from typing import TypeVar
from weakref import WeakKeyDictionary

import numpy as np

from trnscope.advisor.graph import build_graph
from trnscope.advisor.host_threads import op_time
from trnscope.advisor.recording import Recording
from trnscope.advisor.removal import DeviceCut, HostCut, Removal
from trnscope.advisor.replay import Replay
from trnscope.advisor.window import StepWindow, host_bounds
from trnscope.analysis.backward import link_backward
from trnscope.analysis.devices import device_work
from trnscope.analysis.grouping import running_max
from trnscope.analysis.names import slices_named
from trnscope.analysis.step_finder import Step, find_steps
from trnscope.analysis.threads import is_host_thread, main_thread
from trnscope.model.intervals import I64, Intervals
from trnscope.model.kinds import DEVICE_WORK, SliceKind
from trnscope.store.reader import Trace
from trnscope.store.tables import U32, Bool


@dataclass(frozen=True, eq=False, repr=False)
class StepContext:
    """One trace and the steps of it that are judged. Everything is computed when first asked."""

    trace: Trace
    window: StepWindow
    recording: Recording | None = None
    """Absent where ``trnscope run`` did not record the trace."""
    _known: dict[tuple[SliceKind, ...], U32] = field(default_factory=dict)
    """Slices of the window by their kinds, once asked for."""

    @property
    def step_ns(self) -> int:
        """The mean step."""
        return self.window.step_ns

    def per_step(self, ns: int) -> int:
        """A sum over the window as a mean per step."""
        return ns // self.window.num_steps

    @cached_property
    def main(self) -> int | None:
        """The thread that runs the program."""
        return main_thread(self.trace, find_steps(self.trace))

    @cached_property
    def replay(self) -> Replay | None:
        """The steps, ready to be run without something; absent without a host thread."""
        graph = build_graph(self.trace, self.window)
        return None if graph is None else Replay(graph)

    # Finding slices.

    def inside(self, ids: U32) -> U32:
        """Those that start in the window."""
        start = self.trace.slices.start_ns[ids]
        return ids[(start >= self.window.start_ns) & (start < self.window.end_ns)]

    def _named(self, kinds: tuple[SliceKind, ...], pattern: re.Pattern[str] | None) -> U32:
        ids = self._known.get(kinds)
        if ids is None:
            ids = self._known[kinds] = self.inside(self.trace.slices.of_kind(*kinds))
        return ids if pattern is None else slices_named(self.trace, ids, pattern.search)

    def ops(self, pattern: re.Pattern[str] | None = None) -> U32:
        """Ops of the window whose name has a match, rising."""
        return self._named((SliceKind.CPU_OP,), pattern)

    def ranges(self, pattern: re.Pattern[str]) -> U32:
        """Annotations of the window on host threads whose name has a match, rising."""
        return self._named((SliceKind.ANNOTATION,), pattern)

    def calls(self, pattern: re.Pattern[str]) -> U32:
        """Runtime calls of the window whose name has a match, rising."""
        return self._named((SliceKind.RUNTIME,), pattern)

    def frames(self, pattern: re.Pattern[str] | None = None) -> U32:
        """Python frames of the window whose name has a match, rising."""
        return self._named((SliceKind.PYTHON,), pattern)

    def other_host(self, pattern: re.Pattern[str]) -> U32:
        """Host slices of the window that are none of these, whose name has a match, rising."""
        return self._named((SliceKind.OTHER, SliceKind.OVERHEAD), pattern)

    def overheads(self, pattern: re.Pattern[str]) -> U32:
        """The profiler's own slices of the window whose name has a match, rising."""
        return self._named((SliceKind.OVERHEAD,), pattern)

    def device(self, *kinds: SliceKind, pattern: re.Pattern[str] | None = None) -> U32:
        """Device work of the window, of these kinds or of all, rising."""
        return self._named(kinds or DEVICE_WORK, pattern)

    def on_main(self, ids: U32) -> U32:
        """Those on the main thread."""
        main = -1 if self.main is None else self.main
        return np.asarray(ids[self.trace.slices.track[ids] == main], np.uint32)

    def outermost(self, ids: U32) -> U32:
        """Without those that lie in another of them, by thread, then time."""
        slices = self.trace.slices
        order = np.lexsort((-slices.dur_ns[ids], slices.start_ns[ids], slices.track[ids]))
        ids = ids[order]
        track = slices.track[ids].astype(np.int64)
        end = slices.start_ns[ids] + slices.dur_ns[ids]
        new = np.append(True, track[1:] != track[:-1])[: ids.size]
        reach = running_max(np.cumsum(new), end)
        inner = np.zeros(ids.size, np.bool_)
        inner[1:] = ~new[1:] & (end[1:] <= reach[:-1])
        return ids[~inner]

    def lies_in(self, ids: U32, outer: U32) -> Bool:
        """For each slice whether it starts in one of ``outer`` on its thread."""
        found = np.zeros(ids.size, np.bool_)
        track, start = self.trace.slices.track[ids], self.trace.slices.start_ns[ids]
        for thread, time in self._covered(outer).items():
            mine = track == thread
            found[mine] = _holds(time, start[mine])
        return found

    def holds(self, outer: U32, inner: U32) -> Bool:
        """For each of ``outer``, nested or not, whether one of ``inner`` starts in it on its
        thread."""
        slices = self.trace.slices
        found = np.zeros(outer.size, np.bool_)
        for thread in np.unique(slices.track[outer]).tolist():
            mine = np.flatnonzero(slices.track[outer] == thread)
            at = np.sort(slices.start_ns[inner[slices.track[inner] == thread]])
            start = slices.start_ns[outer[mine]]
            end = start + slices.dur_ns[outer[mine]]
            found[mine] = np.searchsorted(at, end) > np.searchsorted(at, start)
        return found

    def launches_of(self, work: U32) -> U32:
        """The calls that launched some device work, rising."""
        launches = self.trace.launches
        mine = np.isin(launches.device_slice, work) & launches.has_launch
        return np.unique(launches.launch_slice[mine]).astype(np.uint32)

    @cached_property
    def _backward(self) -> tuple[U32, U32]:
        links = link_backward(self.trace)
        return links.forward, links.backward

    def with_backward(self, ids: U32) -> U32:
        """Those, and the backward ops that autograd ran for what is in them.

        Each with the engine's range around it, in which gradients of a tensor that is used more
        than once are added up: without the formula, the tensor is used once.
        """
        forward, backward = self._backward
        mine = self.inside(backward[self.lies_in(forward, ids)])
        around = self.trace.slices.parent[mine]
        names = self.trace.slices.name[around]
        known = {one: self.trace.strings[one] for one in np.unique(names).tolist()}
        is_engine = np.array(
            [BACKWARD_NODES.match(known[one]) is not None for one in names.tolist()], bool
        )
        return np.union1d(ids, np.where(is_engine, around, mine)).astype(np.uint32)

    # Adding up.

    def names(self, ids: U32) -> list[str]:
        """Their names."""
        return self.trace.strings.take(self.trace.slices.name[ids])

    def _covered(self, ids: U32) -> dict[int, Intervals]:
        slices = self.trace.slices
        found = {}
        for thread in np.unique(slices.track[ids]).tolist():
            mine = ids[slices.track[ids] == thread]
            start = slices.start_ns[mine]
            found[thread] = Intervals.union_of(start, start + slices.dur_ns[mine])
        return found

    def time_by_thread(self, ids: U32) -> dict[int, Intervals]:
        """The time of the window that host slices cover, by thread."""
        bounds = (self.window.start_ns, self.window.end_ns)
        return {track: time.clip(*bounds) for track, time in self._covered(ids).items()}

    def union_of(self, ids: U32) -> Intervals:
        """The time of the window that slices cover, on whatever track."""
        time = Intervals.empty()
        for part in self.time_by_thread(ids).values():
            time = time.union(part)
        return time

    def duration_ns(self, ids: U32) -> int:
        """Time that slices take per step, each instant of a thread or stream once."""
        return self.per_step(sum(time.total for time in self.time_by_thread(ids).values()))

    def launched_in(self, ids: U32) -> U32:
        """Device work that was launched inside host slices, rising."""
        work, calls = self._linked
        return work[self.lies_in(calls, ids)] if work.size else work

    @cached_property
    def _linked(self) -> tuple[U32, U32]:
        """Device work of the window with its launches."""
        launches, window = self.trace.launches, self.window
        calls = launches.launch_slice
        start = self.trace.slices.start_ns[calls]
        mine = launches.has_launch & (start >= window.start_ns) & (start < window.end_ns)
        return launches.device_slice[mine], calls[mine]

    def host_removal(self, ids: U32, share: float = 1.0) -> Removal:
        """This share of host slices gone; what they launched stays."""
        times = self.time_by_thread(ids).items()
        return Removal(tuple(HostCut(track, time, share) for track, time in times))

    def removal_of(self, ids: U32, share: float = 1.0) -> Removal:
        """This share gone of host slices, and of the device work that they launched."""
        work = self.launched_in(ids)
        device = (DeviceCut(work, share),) if work.size else ()
        return replace(self.host_removal(ids, share), device=device)

    @cached_property
    def busy_ns(self) -> int | None:
        """How long the busiest device works per step; absent without device work."""
        bounds = np.array([[self.window.start_ns], [self.window.end_ns]], np.int64)
        busy = [work.busy.covered_within(*bounds) for work in device_work(self.trace)]
        return self.per_step(max(int(one[0]) for one in busy)) if busy else None

    @cached_property
    def all_steps(self) -> tuple[Step, ...]:
        """Those of the trace, with the ones that stand out."""
        return find_steps(self.trace).steps or self.window.steps

    @cached_property
    def host_window(self) -> tuple[int, int]:
        """The window, as far as the host shows anything, ns."""
        return host_bounds(self.trace, self.window)

    @cached_property
    def busy_main(self) -> Intervals:
        """When the main thread runs any op or runtime call."""
        return self._busy(self.main)

    @cached_property
    def busy_threads(self) -> Intervals:
        """When any host thread runs one."""
        time = Intervals.empty()
        for track in np.flatnonzero(is_host_thread(self.trace)).tolist():
            time = time.union(self._busy(track))
        return time

    def _busy(self, track: int | None) -> Intervals:
        if track is None:
            return Intervals.empty()
        return op_time(self.trace, track, *self.host_window)

    @cached_property
    def loading(self) -> U32:
        """The ranges in which the program asks a DataLoader for a batch."""
        return self.ranges(LOADER)

    def longest(self, ids: U32, count: int = 50) -> list[int]:
        """The longest of them, falling."""
        dur = self.trace.slices.dur_ns[ids]
        order = np.lexsort((ids, -dur))[:count]
        return [int(at) for at in ids[order]]


ATEN = re.compile(r"^aten::")
OPTIMIZER = re.compile(r"Optimizer\.(step|zero_grad)#")
"""The ranges that torch puts around an optimizer's methods."""
OPTIMIZER_STEP = re.compile(r"Optimizer\.step#")
BACKWARD_NODES = re.compile(r"^autograd::engine::evaluate_function")
"""The op that autograd's engine puts around each node of the backward pass."""
LOADER = re.compile(r"enumerate\(DataLoader\)#")
"""The range that torch puts around each request for a batch."""
_Result = TypeVar("_Result")


def once_per_context(
    function: Callable[[StepContext], _Result],
) -> Callable[[StepContext], _Result]:
    """Call a function of a context once for each: several rules ask for the same."""
    results: WeakKeyDictionary[StepContext, _Result] = WeakKeyDictionary()

    @wraps(function)
    def remembered(context: StepContext) -> _Result:
        if context not in results:
            results[context] = function(context)
        return results[context]

    return remembered


def _holds(time: Intervals, at: I64) -> Bool:
    index = np.searchsorted(time.start, at, side="right") - 1
    inside = (index >= 0) & (at < time.end[np.maximum(index, 0)]) if len(time) else index >= 0
    return np.asarray(inside, np.bool_)
