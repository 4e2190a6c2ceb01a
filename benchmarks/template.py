"""The events of a few training steps that the generator repeats, section by section.

The host part is a real torch 2.13 CPU profile (``record_template.py``). No GPU was at hand:
the device part is derived from it. Each leaf operator that would start device work gets a
runtime call, a flow pair and a kernel, copy or fill on a stream that runs one thing at a time;
each eighth gradient gets an all-reduce on a second stream. Backward operators move to a thread
of their own, as on a GPU. The args of device rows follow Kineto's writer.
"""

from __future__ import annotations

import lzma
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

TEMPLATE = Path(__file__).with_name("template.trace.json.xz")

HOST_CATEGORIES = ("cpu_op", "user_annotation", "python_function", "cuda_runtime")
COMPUTE_STREAM = 7
COMMUNICATION_STREAM = 20
BACKWARD_THREAD_OFFSET = 64
GRADIENTS_PER_BUCKET = 8
LAUNCH_LATENCY_NS = 4_000
STREAM_GAP_NS = 900
ARGS_LINE_BREAK = ",\n      "
"""Kineto's C++ writer spreads the args of device rows over lines."""

_VIEW_NAMES = """
    as_strided as_strided_ broadcast_tensors chunk contiguous detach empty empty_like
    empty_strided expand item linear matmul narrow _reshape_alias reshape resize_ resolve_conj
    select slice split squeeze t to transpose unsqueeze _unsafe_view view
"""
_VIEWS = frozenset(f"aten::{name}" for name in _VIEW_NAMES.split())
_MATMULS = ("aten::mm", "aten::addmm", "aten::bmm", "aten::mkldnn_convolution")
_FILLS = ("aten::fill_", "aten::zero_")
_EVENT_BREAK = "\n  },\n  {"


@dataclass(frozen=True)
class Event:
    """One event. Times are nanoseconds from the template's start; texts are raw JSON text."""

    ph: str
    name: str
    pid: str
    tid: str
    start_ns: int
    dur_ns: int | None = None
    cat: str | None = None
    id: int | None = None
    args: str | None = None
    scope: str | None = None

    @property
    def end_ns(self) -> int:
        """End of a slice; the time itself of any other event."""
        return self.start_ns + (self.dur_ns or 0)


@dataclass(frozen=True)
class Template:
    """Events in Kineto's section order, and the number of steps they hold."""

    head: tuple[Event, ...]
    sections: tuple[tuple[Event, ...], ...]
    tail: tuple[Event, ...]
    span_ns: int
    num_steps: int


def recorded_text() -> str:
    """The JSON text that torch wrote."""
    return lzma.decompress(TEMPLATE.read_bytes()).decode()


def load_template() -> Template:
    """The recorded events with the device part added."""
    events = list(parse_events(recorded_text()))
    head = [e for e in events if e.ph == "M" and e.pid != '"Spans"']
    host = [e for e in events if e.cat in ("cpu_op", "user_annotation", "fwdbwd")]
    memory = [e for e in events if e.cat == "cpu_instant_event"]
    python = [e for e in events if e.cat == "python_function"]
    tail = [e for e in events if e.pid in ('"Spans"', '"Traces"', '""')]

    backward = _Backward(host)
    host = [backward.moved(e) for e in host]
    memory = [backward.moved(e) for e in memory]
    device = _DevicePart(host)
    host = sorted([*host, *device.host_rows], key=lambda e: e.start_ns)
    sections = (host, memory, python, device.rows, device.annotations)
    num_steps = sum(e.name.startswith("ProfilerStep#") for e in host)
    return Template(
        head=(*head, *backward.metadata(head), *_device_metadata(head[0].start_ns)),
        sections=tuple(tuple(section) for section in sections),
        tail=tuple(tail),
        span_ns=max(e.end_ns for section in sections for e in section),
        num_steps=num_steps,
    )


def parse_events(text: str) -> Iterator[Event]:
    """Events of a trace in the layout of torch 2.13's C++ writer, times made relative."""
    body = text[text.index('"traceEvents": [') : text.rindex("\n  }\n  ],")]
    blocks = body[body.index("\n  {") + 4 :].split(_EVENT_BREAK)
    times = [_nanoseconds(block, "ts") for block in blocks]
    first = min(time for time in times if time is not None)
    for block, start in zip(blocks, times, strict=True):
        flow_id = _text(block, r'"id": (\d+),')
        yield Event(
            ph=_text(block, r'"ph": "(.)"') or "",
            name=_text(block, r'"name": "(.*)"') or "",
            pid=_text(block, r'"pid": (.*),') or "",
            tid=_text(block, r'"tid": (.*),') or "",
            start_ns=(start or first) - first,
            dur_ns=_nanoseconds(block, "dur"),
            cat=_text(block, r'"cat": "(.*)"'),
            id=None if flow_id is None else int(flow_id),
            args=_text(block, r'"args": \{\n\s*(.*)\n'),
            scope=_text(block, r'"s": "(.)"'),
        )


def _text(block: str, pattern: str) -> str | None:
    found = re.search(pattern, block)
    return found.group(1) if found else None


def _nanoseconds(block: str, key: str) -> int | None:
    found = re.search(rf'"{key}": (\d+)\.(\d{{3}})', block)
    return int(found.group(1)) * 1000 + int(found.group(2)) if found else None


class _Backward:
    """Moves what runs under autograd's engine to its own thread."""

    def __init__(self, host: list[Event]) -> None:
        self._spans: list[tuple[int, int]] = []
        end = -1
        for event in sorted(host, key=lambda e: (e.start_ns, -e.end_ns)):
            if event.name.startswith("autograd::engine::") and event.start_ns >= end:
                end = event.end_ns
                self._spans.append((event.start_ns, end))
        self._cursor = 0

    def moved(self, event: Event) -> Event:
        """The event, on the backward thread if it lies in an engine call. Asked in time order."""
        if self._cursor and event.start_ns < self._spans[self._cursor - 1][1]:
            self._cursor = 0
        while self._cursor < len(self._spans) and self._spans[self._cursor][1] < event.start_ns:
            self._cursor += 1
        if self._cursor == len(self._spans) or event.start_ns < self._spans[self._cursor][0]:
            return event
        return replace(event, tid=_backward_thread(event.tid))

    def metadata(self, head: list[Event]) -> list[Event]:
        """Name and order of the new thread, after the main thread's."""
        first = next(e for e in head if e.name == "thread_name")
        tid = _backward_thread(first.tid)
        return [
            replace(first, tid=tid, args=f'"name": "thread {tid} (pt_autograd_0)"'),
            replace(first, tid=tid, name="thread_sort_index", args=f'"sort_index": {tid}'),
        ]


def _backward_thread(tid: str) -> str:
    return str(int(tid) + BACKWARD_THREAD_OFFSET)


def _device_metadata(start_ns: int) -> list[Event]:
    rows = [
        ("process_name", "0", '"name": "python"'),
        ("process_labels", "0", '"labels": "GPU 0"'),
        ("process_sort_index", "0", '"sort_index": 5000000'),
    ]
    for stream in (COMPUTE_STREAM, COMMUNICATION_STREAM):
        rows.append(("thread_name", str(stream), f'"name": "stream {stream} "'))
        rows.append(("thread_sort_index", str(stream), f'"sort_index": {stream}'))
    return [Event("M", name, "0", tid, start_ns, args=args) for name, tid, args in rows]


@dataclass
class _Stream:
    """A device queue that runs one thing at a time."""

    tid: str
    free_ns: int = 0

    def run(self, launch_ns: int, dur_ns: int) -> int:
        """Start time of work launched at ``launch_ns``."""
        start = max(launch_ns + LAUNCH_LATENCY_NS, self.free_ns + STREAM_GAP_NS)
        self.free_ns = start + dur_ns
        return start


@dataclass
class _DevicePart:
    """Runtime calls, device work, flows and device annotations derived from host operators."""

    host: list[Event]
    rows: list[Event] = field(default_factory=list)
    host_rows: list[Event] = field(default_factory=list)
    annotations: list[Event] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._streams = {s: _Stream(str(s)) for s in (COMPUTE_STREAM, COMMUNICATION_STREAM)}
        self._correlation = 0
        self._work: list[tuple[int, Event]] = []
        self._next_id = 1 + max(_number(e.args, "External id") for e in self.host if e.dur_ns)
        self._num_gradients = 0
        for op in _leaves(self.host):
            self._add_op(op)
        self._annotate_compute_stream()

    def _add_op(self, op: Event) -> None:
        external_id = _number(op.args, "External id")
        start = op.start_ns + (op.dur_ns or 0) // 4
        dur = max((op.dur_ns or 0) // 2, 1)
        if op.name in _FILLS:
            self._launch(op, start, dur, external_id, "gpu_memset", "Memset (Device)")
        elif op.name == "aten::_local_scalar_dense":
            name = "Memcpy DtoH (Device -> Pageable)"
            self._launch(op, start, dur // 2, external_id, "gpu_memcpy", name)
            wait = (start + dur // 2, max(dur // 4, 1))
            self._runtime(op, *wait, external_id, "cudaStreamSynchronize", 131)
        elif op.name == "aten::copy_" and external_id % 10 == 0:
            name = "Memcpy HtoD (Pageable -> Device)"
            self._launch(op, start, dur, external_id, "gpu_memcpy", name)
        elif op.name == "detach":
            self._num_gradients += 1
            if self._num_gradients % GRADIENTS_PER_BUCKET == 0:
                self._all_reduce(op)
        else:
            self._launch(op, start, dur, external_id, "kernel", kernel_name(op.name))

    def _all_reduce(self, op: Event) -> None:
        """An annotated collective inside ``op``, its kernel on the communication stream."""
        step = max((op.dur_ns or 0) // 10, 2)
        outer = self._host_row(op, "user_annotation", "nccl:all_reduce", step, 8 * step, "")
        collective = _collective_args(self._num_gradients // GRADIENTS_PER_BUCKET)
        inner = self._host_row(
            op, "cpu_op", "record_param_comms", 2 * step, 6 * step, collective + ", "
        )
        self._launch(
            inner,
            inner.start_ns + step,
            step * 4,
            _number(inner.args, "External id"),
            "kernel",
            "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
            COMMUNICATION_STREAM,
        )
        self._annotate(outer, self._work[-1:], COMMUNICATION_STREAM)

    def _host_row(self, op: Event, cat: str, name: str, after: int, dur: int, extra: str) -> Event:
        number = self._next_id
        self._next_id += 1
        args = f'"External id": {number},"Record function id": 0, {extra}"Ev Idx": {number}'
        row = replace(op, cat=cat, name=name, args=args)
        row = replace(row, start_ns=op.start_ns + after, dur_ns=dur)
        self.host_rows.append(row)
        return row

    def _launch(
        self,
        op: Event,
        start: int,
        dur: int,
        external_id: int,
        cat: str,
        name: str,
        stream: int = COMPUTE_STREAM,
    ) -> None:
        """A device row, its flow pair and the runtime call, in the order Kineto writes them."""
        call, cbid = {
            "kernel": ("cudaLaunchKernel", 211),
            "gpu_memcpy": ("cudaMemcpyAsync", 41),
            "gpu_memset": ("cudaMemsetAsync", 51),
        }[cat]
        if stream == COMMUNICATION_STREAM:
            call, cbid = "cudaLaunchKernelExC", 430
        device_dur = _device_duration(cat, dur, stream)
        device_start = self._streams[stream].run(start, device_dur)
        correlation = self._correlation + 1
        args = _device_args(cat, external_id, correlation, stream, device_dur)
        tid = self._streams[stream].tid
        work = Event("X", name, "0", tid, device_start, device_dur, cat, args=args)
        self._work.append((op.start_ns, work))
        self.rows.append(work)
        self.rows.append(Event("f", "ac2g", "0", tid, device_start, cat="ac2g", id=correlation))
        self._runtime(op, start, dur, external_id, call, cbid)
        self.rows.append(Event("s", "ac2g", op.pid, op.tid, start, cat="ac2g", id=correlation))

    def _runtime(
        self, op: Event, start: int, dur: int, external_id: int, call: str, cbid: int
    ) -> None:
        self._correlation += 1
        number = f'"cbid": {cbid}, "correlation": {self._correlation}'
        args = f'"External id": {external_id}{ARGS_LINE_BREAK}{number}'
        self.rows.append(Event("X", call, op.pid, op.tid, start, dur, "cuda_runtime", args=args))

    def _annotate_compute_stream(self) -> None:
        """Show the host's annotations on the compute stream, over the work they launched."""
        stream = str(COMPUTE_STREAM)
        work = [(at, event) for at, event in self._work if event.tid == stream]
        for host in self.host:
            if host.cat == "user_annotation":
                covered = [(at, e) for at, e in work if host.start_ns <= at < host.end_ns]
                self._annotate(host, covered, COMPUTE_STREAM)

    def _annotate(self, host: Event, covered: list[tuple[int, Event]], stream: int) -> None:
        if not covered:
            return
        start = min(work.start_ns for _, work in covered) - 1
        end = max(work.end_ns for _, work in covered) + 1
        args = f'"External id": {_number(host.args, "External id")}'
        tid = str(stream)
        row = Event("X", host.name, "0", tid, start, end - start, "gpu_user_annotation", args=args)
        self.annotations.append(row)


def _leaves(host: list[Event]) -> list[Event]:
    """Operators with no operator inside them that start device work, by time."""
    leaves = []
    threads: dict[str, list[Event]] = {}
    for event in host:
        if event.cat == "cpu_op":
            threads.setdefault(event.tid, []).append(event)
    for events in threads.values():
        events.sort(key=lambda e: (e.start_ns, -e.end_ns))
        following = [*events[1:], None]
        leaves += [
            event
            for event, after in zip(events, following, strict=True)
            if (after is None or after.start_ns >= event.end_ns) and _starts_work(event.name)
        ]
    return sorted(leaves, key=lambda e: e.start_ns)


def _starts_work(name: str) -> bool:
    return name == "detach" or (name.startswith("aten::") and name not in _VIEWS)


def _number(args: str | None, key: str) -> int:
    found = re.search(rf'"{key}": (\d+)', args or "")
    return int(found.group(1)) if found else 0


def kernel_name(op_name: str) -> str:
    """A kernel name of the length and shape that torch's CUDA kernels have."""
    if op_name in _MATMULS:
        return f"bench_sgemm_128x64_tn_{op_name.removeprefix('aten::')}"
    words = op_name.removeprefix("aten::").strip("_").split("_")
    functor = "".join(word.capitalize() for word in words) + "Functor<float>"
    arguments = f"at::native::{functor}, std::array<char*, 3ul>"
    return f"void at::native::vectorized_elementwise_kernel<4, {arguments} >(int, {arguments})"


def _device_duration(cat: str, launch_dur: int, stream: int) -> int:
    if stream == COMMUNICATION_STREAM:
        return 60_000 + 20 * launch_dur
    return 1_100 + launch_dur // 3 if cat == "kernel" else 800 + launch_dur // 5


def _device_args(cat: str, external_id: int, correlation: int, stream: int, dur: int) -> str:
    head = f'"External id": {external_id}'
    place = '"device": 0, "context": 1'
    queue = f'"stream": {stream}, "correlation": {correlation}'
    if cat != "kernel":
        size = 4 * (1 + dur % 4096)
        amount = f'"bytes": {size}, "memory bandwidth (GB/s)": {size / dur:.6f}'
        return ARGS_LINE_BREAK.join((head, place, queue, amount))
    blocks = 1 + dur % 640
    lines = [
        head,
        f'"queued": 0, {place}',
        queue,
        f'"registers per thread": {16 + dur % 8 * 8}',
        f'"shared memory": {dur % 3 * 16384}',
        f'"blocks per SM": {blocks / 132:.6f}',
        f'"warps per SM": {blocks * 4 / 132:.6f}',
        f'"grid": [{blocks}, 1, 1]',
        '"block": [128, 1, 1]',
        f'"est. achieved occupancy %": {min(100, blocks // 7)}',
    ]
    if stream == COMMUNICATION_STREAM:
        lines.append(_collective_args(correlation))
    return ARGS_LINE_BREAK.join(lines)


def _collective_args(seq: int) -> str:
    return (
        '"Collective name": "allreduce", "In msg nelems": 131072, "Out msg nelems": 131072, '
        '"Group size": 8, "dtype": "Float", "In split size": "[]", "Out split size": "[]", '
        '"Process Group Name": "0", "Process Group Description": "default_pg", '
        f'"Process Group Ranks": "[0, 1, 2, 3, 4, 5, 6, 7]", "Seq": {seq}, '
        '"Is asynchronized op": true'
    )


def merged_rows(sections: tuple[tuple[Event, ...], ...]) -> list[set[int]]:
    """For each section the rows that torch's table counts as one call with their parent: the
    only child of a host slice of the same name."""
    threads: dict[str, list[tuple[int, int, int, int]]] = {}
    for number, section in enumerate(sections):
        for row, event in enumerate(section):
            if event.cat in HOST_CATEGORIES:
                key = (event.start_ns, -event.end_ns, number, row)
                threads.setdefault(event.tid, []).append(key)
    merged: list[set[int]] = [set() for _ in sections]
    for slices in threads.values():
        for parent, children in _children(sorted(slices)).items():
            name = sections[parent[0]][parent[1]].name
            number, row = children[0]
            if len(children) == 1 and sections[number][row].name == name:
                merged[number].add(row)
    return merged


def _children(
    slices: list[tuple[int, int, int, int]],
) -> dict[tuple[int, int], list[tuple[int, int]]]:
    children: dict[tuple[int, int], list[tuple[int, int]]] = {}
    open_slices: list[tuple[int, tuple[int, int]]] = []
    for start, minus_end, *place in slices:
        while open_slices and (open_slices[-1][0] <= start or open_slices[-1][0] < -minus_end):
            open_slices.pop()
        own = (place[0], place[1])
        if open_slices:
            children.setdefault(open_slices[-1][1], []).append(own)
        open_slices.append((-minus_end, own))
    return children
