"""How long device work waits after its launch, how much is queued, and what has no partner."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from trnscope.analysis.devices import DeviceWork, device_work
from trnscope.analysis.memo import once_per_trace
from trnscope.analysis.names import slices_named
from trnscope.model.intervals import I64
from trnscope.model.kinds import SliceKind
from trnscope.model.track import Device
from trnscope.store.profile import Profile
from trnscope.store.reader import Trace
from trnscope.store.tables import U32

_LAUNCH_NAME = re.compile(
    r"Launch(?!Host)|Memcpy.*Async|Memset.*Async|Enqueue|nrt_execute|nrt_infer"
)
_COPY_NAME = re.compile(r"mem(cpy|set|_copy|_fill)|copy|fill", re.IGNORECASE)


@dataclass(frozen=True)
class Distribution:
    """Nearest-rank percentiles of some durations, ns; of no values there is none."""

    count: int
    min_ns: int
    p50_ns: int
    p95_ns: int
    max_ns: int

    @staticmethod
    def of(values: I64) -> Distribution | None:
        """The distribution of at least one value."""
        if values.size == 0:
            return None
        ranks = [-(-values.size * percent // 100) - 1 for percent in (50, 95)]
        ordered = np.partition(values, [0, *ranks, values.size - 1])
        p50, p95 = (int(ordered[rank]) for rank in ranks)
        return Distribution(values.size, int(ordered[0]), p50, p95, int(ordered[-1]))

    def to_json(self) -> dict[str, int]:
        """Its numbers."""
        return {
            "count": self.count,
            "min_ns": self.min_ns,
            "p50_ns": self.p50_ns,
            "p95_ns": self.p95_ns,
            "max_ns": self.max_ns,
        }


@dataclass(frozen=True)
class QueueLength:
    """Device work of one stream that is launched and not finished, over time.

    ``length[i]`` holds from ``ts_ns[i]`` to ``ts_ns[i + 1]``; the last is 0. Never below 0:
    work without a launch is left out.
    """

    ts_ns: I64
    length: I64

    @property
    def max_length(self) -> int:
        """Most at any time."""
        return int(self.length.max(initial=0))

    @property
    def mean_length(self) -> float | None:
        """Average over the time from the first launch to the last end; absent without any."""
        if self.ts_ns.size == 0 or self.ts_ns[-1] == self.ts_ns[0]:
            return None
        weighted = int((self.length[:-1] * np.diff(self.ts_ns)).sum())
        return weighted / int(self.ts_ns[-1] - self.ts_ns[0])


@dataclass(frozen=True)
class StreamLaunches:
    """Launches of the work of one stream. See docs/metrics/launch-latency.md."""

    source: int
    rank: int | None
    device: Device
    stream: int | None
    num_work: int
    """Kernels, collectives, copies and fills on the stream."""
    num_launches: int
    """Host calls behind them; a graph launch is one."""
    latency: Distribution | None
    """Start of a launch's first work minus start of the launch. Negative if clocks disagree."""
    delay: Distribution | None
    """Start of a launch's first work minus end of the launch call; negative if it began first."""
    num_unlinked: int
    unlinked_ns: int
    queue: QueueLength

    def to_json(self) -> dict[str, object]:
        """Without the queue's curve: its maximum and mean."""
        return {
            "source": self.source,
            "rank": self.rank,
            "device": self.device.label,
            "stream": self.stream,
            "num_work": self.num_work,
            "num_launches": self.num_launches,
            "latency": None if self.latency is None else self.latency.to_json(),
            "delay": None if self.delay is None else self.delay.to_json(),
            "num_unlinked": self.num_unlinked,
            "unlinked_ns": self.unlinked_ns,
            "max_queue_length": self.queue.max_length,
            "mean_queue_length": self.queue.mean_length,
        }


@dataclass(frozen=True)
class HostLaunches:
    """Launch calls of one trace, seen from the host."""

    source: int
    rank: int | None
    num_launches: int
    """Calls that started device work or are named like such calls."""
    num_without_work: int
    """Of these, the kernel and graph launches whose work is not in the trace."""
    num_copies_without_work: int
    """Of these, the copies and fills without device work. A call for no bytes has none."""
    window_ns: int
    """From the first launch's start to the last one's."""

    @property
    def launches_per_second(self) -> float | None:
        """Launches after the first, per second of ``window_ns``; absent with fewer than two."""
        if self.num_launches < 2 or self.window_ns == 0:
            return None
        return (self.num_launches - 1) * 1e9 / self.window_ns

    def to_json(self) -> dict[str, object]:
        """Its numbers and the rate."""
        return {
            "source": self.source,
            "rank": self.rank,
            "num_launches": self.num_launches,
            "num_without_work": self.num_without_work,
            "num_copies_without_work": self.num_copies_without_work,
            "window_ns": self.window_ns,
            "launches_per_second": self.launches_per_second,
        }


@dataclass(frozen=True)
class LaunchReport:
    """Launches of a profile: by stream, and by host."""

    streams: tuple[StreamLaunches, ...]
    hosts: tuple[HostLaunches, ...]

    def to_json(self) -> dict[str, object]:
        """``{"schema": 1, "streams": [...], "hosts": [...]}``."""
        return {
            "schema": 1,
            "streams": [stream.to_json() for stream in self.streams],
            "hosts": [host.to_json() for host in self.hosts],
        }


def launches(profile: Profile) -> LaunchReport:
    """Launch latency, delay, queue length and missing partners of a profile."""
    traces = list(enumerate(profile.traces))
    return LaunchReport(
        streams=tuple(row for i, trace in traces for row in stream_launches(trace, i)),
        hosts=tuple(row for i, trace in traces if (row := host_launches(trace, i)) is not None),
    )


def stream_launches(trace: Trace, source: int = 0) -> tuple[StreamLaunches, ...]:
    """One row for each stream that has device work."""
    rows = []
    for work in device_work(trace):
        tracks = np.flatnonzero(np.bincount(trace.slices.track[work.slices])).tolist()
        rows += [_of_stream(trace, source, work, track) for track in tracks]
    return tuple(rows)


def host_launches(trace: Trace, source: int = 0) -> HostLaunches | None:
    """Launch calls of one trace; absent where it has none."""
    calls = launch_calls(trace)
    if calls.size == 0:
        return None
    start = trace.slices.start_ns[calls]
    return HostLaunches(
        source=source,
        rank=trace.source.rank,
        num_launches=calls.size,
        num_without_work=launches_without_work(trace).size,
        num_copies_without_work=copies_without_work(trace).size,
        window_ns=int(start.max() - start.min()),
    )


@once_per_trace
def launch_calls(trace: Trace) -> U32:
    """Runtime calls that launch device work, rising.

    They are those that did, and any that share a name with one that did or are named like a
    launch (``cudaLaunchKernel``, ``hipGraphLaunch``, ``cudaMemcpyAsync``, ``nrt_execute``).
    """
    runtime = trace.slices.of_kind(SliceKind.RUNTIME)
    linked = trace.launches.launch_slice[trace.launches.has_launch]
    is_launch = np.zeros(len(trace.strings), np.bool_)
    is_launch[trace.slices.name[linked]] = True
    is_launch[trace.slices.name[slices_named(trace, runtime, _LAUNCH_NAME.search)]] = True
    return runtime[is_launch[trace.slices.name[runtime]]]


def launches_without_work(trace: Trace) -> U32:
    """Kernel and graph launches whose device work is not in the trace, rising."""
    return _without_work(trace)[0]


def copies_without_work(trace: Trace) -> U32:
    """Calls that copy or fill without device work in the trace, rising.

    They tell little: a copy or fill of no bytes runs nothing on the device.
    """
    return _without_work(trace)[1]


@once_per_trace
def _without_work(trace: Trace) -> tuple[U32, U32]:
    calls = launch_calls(trace)
    has_work = np.zeros(len(trace.slices), np.bool_)
    has_work[trace.launches.launch_slice[trace.launches.has_launch]] = True
    without = calls[~has_work[calls]]
    copies = slices_named(trace, without, _COPY_NAME.search)
    return np.setdiff1d(without, copies, assume_unique=True), copies


def queue_length(launched_ns: I64, started_ns: I64, ended_ns: I64) -> QueueLength:
    """Work launched and not finished, from each one's launch to its end.

    Work that starts before its launch (the clocks disagree) counts from its start.
    """
    enter = np.minimum(launched_ns, started_ns)
    lasting = ended_ns > enter
    times = np.concatenate((enter[lasting], ended_ns[lasting]))
    change = np.ones(times.size, np.int64)
    change[times.size // 2 :] = -1
    order = np.argsort(times, kind="stable")
    times, length = times[order], np.cumsum(change[order])
    last = np.append(times[1:] != times[:-1], True)[: times.size]
    return QueueLength(times[last], length[last])


def _of_stream(trace: Trace, source: int, work: DeviceWork, track: int) -> StreamLaunches:
    slices = trace.slices
    mine = slices.track[work.slices] == track
    linked = mine & work.is_linked
    ids, calls = work.slices[linked], work.launches[linked]
    started, called = slices.start_ns[ids], slices.start_ns[calls]
    unlinked = work.slices[mine & ~work.is_linked]
    first, first_call = _first_work(started, calls)
    return StreamLaunches(
        source=source,
        rank=trace.source.rank,
        device=work.device,
        stream=trace.tracks[track].stream,
        num_work=int(np.count_nonzero(mine)),
        num_launches=first.size,
        latency=Distribution.of(first - slices.start_ns[first_call]),
        delay=Distribution.of(first - slices.start_ns[first_call] - slices.dur_ns[first_call]),
        num_unlinked=unlinked.size,
        unlinked_ns=int(slices.dur_ns[unlinked].sum()),
        queue=queue_length(called, started, started + slices.dur_ns[ids]),
    )


def _first_work(started: I64, calls: U32) -> tuple[I64, U32]:
    """For each distinct call the start of the first work it launched, ns, and the call."""
    order = np.lexsort((started, calls))
    started, calls = started[order], calls[order]
    first = np.append(True, calls[1:] != calls[:-1])[: calls.size]
    return started[first], calls[first]
