"""Laws of the time analyses, and a slow oracle that looks at each nanosecond on its own."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from operator import add
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from trnscope.analysis.attribution import attribute_device_time
from trnscope.analysis.breakdown import breakdown
from trnscope.analysis.devices import summarize_devices
from trnscope.analysis.launch import stream_launches
from trnscope.analysis.overlap import overlap
from trnscope.analysis.steps import summarize_steps
from trnscope.analysis.summary import summarize
from trnscope.model.kinds import SliceKind
from trnscope.store.builder import TraceBuilder
from trnscope.store.profile import Profile
from trnscope.store.reader import Trace

KINDS = (SliceKind.KERNEL, SliceKind.COLLECTIVE, SliceKind.MEMCPY, SliceKind.MEMSET)
COMPUTE = (SliceKind.KERNEL, SliceKind.MEMSET)
STEP_NS = 30
EPOCH_NS = 1_753_000_000_123_456_789
"""Times as of today, in ns: beyond what a float64 holds exactly."""


@dataclass(frozen=True)
class Work:
    """One piece of device work; ``launch`` is (thread, start), absent where it is not known."""

    device: int
    stream: int
    kind: SliceKind
    start: int
    dur: int
    launch: tuple[int, int] | None

    def runs_at(self, ns: int) -> bool:
        return self.start <= ns < self.start + self.dur


offsets = st.sampled_from([0, EPOCH_NS])


def pieces(start: st.SearchStrategy[int], dur: st.SearchStrategy[int]) -> st.SearchStrategy[Work]:
    return st.builds(
        Work,
        device=st.integers(0, 1),
        stream=st.integers(0, 2),
        kind=st.sampled_from(KINDS),
        start=start,
        dur=dur,
        launch=st.none() | st.tuples(st.integers(0, 1), st.integers(0, 80)),
    )


edges = st.lists(pieces(st.sampled_from([0, 1, 97, 98]), st.just(0)), max_size=2)
"""Work without length before the first and after the last of the others."""
works = st.builds(
    add, st.lists(pieces(st.integers(2, 80), st.integers(0, 12)), min_size=1, max_size=14), edges
)


def build(directory: str, work: Sequence[Work], num_steps: int, offset: int) -> Trace:
    """Steps of 30 ns on thread 0, then the work in the order given; all times from ``offset``."""
    b = TraceBuilder(Path(directory) / "t")
    threads = [b.thread(tid=tid) for tid in (1, 2)]
    streams = {(d, s): b.stream(device=d, stream=s) for d in range(2) for s in range(3)}
    for step in range(num_steps):
        name = f"ProfilerStep#{step}"
        b.slice(threads[0], name, offset + STEP_NS * step, STEP_NS + step % 2, SliceKind.ANNOTATION)
    for number, one in enumerate(work, start=1):
        if one.launch is not None:
            thread, at = one.launch
            b.slice(
                threads[thread], "launch", offset + at, 2, SliceKind.RUNTIME, correlation=number
            )
        stream = streams[one.device, one.stream]
        b.slice(stream, "k", offset + one.start, one.dur, one.kind, correlation=number)
    return b.build()


def idle_cause(work: Sequence[Work], ns: int) -> str:
    """Why a device that runs none of ``work`` at ``ns`` is idle, by searching around it."""
    if all(one.launch is None for one in work):
        return "other"
    busy = {t for one in work for t in range(one.start, one.start + one.dur)}
    if not busy:
        return "other"
    before, after = [t for t in busy if t < ns], [t for t in busy if t > ns]
    if not after:
        return "host_wait"
    resumed = min(after)
    launches = [one.launch[1] for one in work if one.start == resumed and one.launch is not None]
    if not launches:
        return "other"
    fell_idle = max(before) + 1 if before else float("-inf")
    return "host_wait" if min(launches) >= fell_idle else "launch_wait"


def part_at(work: Sequence[Work], ns: int) -> str:
    """What one device does at one nanosecond."""
    running = {one.kind for one in work if one.runs_at(ns)}
    if running.intersection(COMPUTE):
        return "compute"
    if SliceKind.COLLECTIVE in running:
        return "exposed_communication"
    return "exposed_memcpy" if running else idle_cause(work, ns)


@settings(max_examples=60, deadline=None)
@given(works, offsets)
def test_device_times_keep_their_laws_and_match_the_oracle(work: list[Work], offset: int) -> None:
    with tempfile.TemporaryDirectory() as directory:
        rows = summarize_devices(build(directory, work, 0, offset))
    window = max(one.start + one.dur for one in work) - min(one.start for one in work)
    for row in rows:
        mine = [one for one in work if one.device == row.device.index]
        at = [{one.kind for one in mine if one.runs_at(ns)} for ns in range(100)]
        compute = [bool(kinds.intersection(COMPUTE)) for kinds in at]
        assert row.busy_ns == sum(map(bool, at))
        assert row.compute_ns == sum(compute)
        assert row.communication_ns == sum(SliceKind.COLLECTIVE in kinds for kinds in at)
        assert row.exposed_memcpy_ns == sum(
            SliceKind.MEMCPY in kinds and not c for kinds, c in zip(at, compute, strict=True)
        )
        assert row.unlinked_ns == sum(one.dur for one in mine if one.launch is None)
        assert row.busy_ns + row.idle_ns == window
        assert row.exposed_communication_ns <= row.communication_ns <= row.busy_ns
        assert row.exposed_memcpy_ns <= row.memcpy_ns <= row.busy_ns <= row.sum_ns
        assert row.unlinked_ns <= row.sum_ns


@settings(max_examples=60, deadline=None)
@given(works, st.integers(1, 3), offsets)
def test_breakdown_matches_the_oracle_and_adds_up(
    work: list[Work], num_steps: int, offset: int
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        rows = breakdown(Profile((build(directory, work, num_steps, offset),))).rows
    devices = sorted({one.device for one in work})
    assert len(rows) == len(devices) * num_steps
    for row in rows:
        assert row.device is not None
        mine = [one for one in work if one.device == row.device.index]
        parts = {part.key: part.duration_ns for part in row.parts}
        expected = dict.fromkeys(parts, 0)
        start = row.start_ns - offset
        for ns in range(start, start + row.duration_ns):
            expected[part_at(mine, ns)] += 1
        assert parts == expected
        assert sum(parts.values()) == row.duration_ns


@settings(max_examples=40, deadline=None)
@given(works, st.integers(1, 3), offsets)
def test_step_device_time_matches_the_oracle(work: list[Work], num_steps: int, offset: int) -> None:
    with tempfile.TemporaryDirectory() as directory:
        rows = summarize_steps(build(directory, work, num_steps, offset))
    has_launches = any(one.launch is not None for one in work)
    for row in rows:
        start = row.start_ns - offset
        end = start + row.duration_ns
        by_clock = {
            (one.device, t)
            for one in work
            for t in range(one.start, one.start + one.dur)
            if start <= t < end
        }
        by_launch = {
            (one.device, t)
            for one in work
            if one.launch is not None and start <= one.launch[1] < end
            for t in range(one.start, one.start + one.dur)
        }
        assert row.device_ns_by_clock == len(by_clock)
        assert row.device_ns_by_launch == (len(by_launch) if has_launches else None)


@settings(max_examples=40, deadline=None)
@given(works, offsets)
def test_queue_length_matches_the_oracle(work: list[Work], offset: int) -> None:
    with tempfile.TemporaryDirectory() as directory:
        rows = stream_launches(build(directory, work, 0, offset))
    for row in rows:
        mine = [
            (min(one.start, one.launch[1]), one.start + one.dur)
            for one in work
            if (one.device, one.stream) == (row.device.index, row.stream) and one.launch is not None
        ]
        curve = dict(
            zip((row.queue.ts_ns - offset).tolist(), row.queue.length.tolist(), strict=True)
        )
        length = 0
        for ns in range(100):
            length = curve.get(ns, length)
            assert length == sum(enter <= ns < leave for enter, leave in mine)
        assert length == 0


@settings(max_examples=40, deadline=None)
@given(works, offsets)
def test_stream_pairs_match_the_oracle(work: list[Work], offset: int) -> None:
    with tempfile.TemporaryDirectory() as directory:
        devices = overlap(Profile((build(directory, work, 0, offset),))).devices
    for device in devices:
        for pair in device.streams:
            both = 0
            for ns in range(100):
                running = {
                    one.stream
                    for one in work
                    if one.device == device.device.index and one.runs_at(ns)
                }
                both += {pair.stream, pair.other} <= running
            assert pair.both_busy_ns == both


@settings(max_examples=40, deadline=None)
@given(works, st.integers(0, 3), offsets)
def test_attribution_gives_each_nanosecond_once(
    work: list[Work], num_steps: int, offset: int
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        found = attribute_device_time(Profile((build(directory, work, num_steps, offset),)))
    given_ns = sum(row.self_device_ns for row in found.rows)
    assert given_ns + found.unattributed_ns == sum(one.dur for one in work)
    assert found.unlinked_ns == sum(one.dur for one in work if one.launch is None)
    for row in found.rows:
        assert 0 <= row.self_device_ns <= row.device_total_ns
        assert 0 <= row.other_thread_ns <= row.device_total_ns


@settings(max_examples=40, deadline=None)
@given(works, st.integers(0, 3), offsets, st.randoms(use_true_random=False))
def test_order_of_events_in_the_file_is_irrelevant(
    work: list[Work], num_steps: int, offset: int, rng: random.Random
) -> None:
    shuffled = list(work)
    rng.shuffle(shuffled)
    documents = []
    for order in (work, shuffled):
        with tempfile.TemporaryDirectory() as directory:
            profile = Profile((build(directory, order, num_steps, offset),))
            documents.append(
                [
                    {**summarize(profile).to_json(), "sources": None},
                    breakdown(profile).to_json(),
                    overlap(profile).to_json(),
                    attribute_device_time(profile).to_json(),
                ]
            )
    assert documents[0] == documents[1]
