"""Makes the small traces of docs/examples: three training steps on one GPU, figures by hand.

Each step is 10 ms long. The host waits 4 ms for the data loader, then launches a copy, the
forward, the backward (from the autograd thread), an all-reduce that half hides behind compute,
and the optimizer. Written as torch.profiler writes it, one event a line; times in µs.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

EXAMPLES = Path(__file__).resolve().parents[1] / "docs" / "examples"
HOST, MAIN, AUTOGRAD = 4242, 4242, 4243
NUM_STEPS, STEP_US = 3, 10_000
_COPY_STREAM, _STREAM, _NCCL_STREAM = 13, 7, 20

Event = dict[str, Any]


def slice_of(cat: str, name: str, tid: int, ts: float, dur: float, **args: object) -> Event:
    """One complete event of a host thread."""
    return {
        "ph": "X",
        "cat": cat,
        "name": name,
        "pid": HOST,
        "tid": tid,
        "ts": ts,
        "dur": dur,
        "args": args,
    }


def device_slice(cat: str, name: str, stream: int, ts: float, dur: float, link: int) -> Event:
    """One piece of device work, joined to its launch by ``link``."""
    return {
        "ph": "X",
        "cat": cat,
        "name": name,
        "pid": 0,
        "tid": stream,
        "ts": ts,
        "dur": dur,
        "args": {"device": 0, "stream": stream, "correlation": link},
    }


class Work:
    """Hands out ids and pairs each op with its launch and device work."""

    def __init__(self) -> None:
        self._next = 1
        self.events: list[Event] = []

    def op(
        self, name: str, tid: int, ts: float, dur: float, shapes: list[list[int]] | None = None
    ) -> int:
        """A framework op; returns its external id."""
        self._next += 1
        args = {"External id": self._next, "Input Dims": shapes or []}
        self.events.append(slice_of("cpu_op", name, tid, ts, dur, **args))
        return self._next

    def launched(
        self,
        call: str,
        tid: int,
        ts: float,
        cat: str,
        kernel: str,
        stream: int,
        at: float,
        dur: float,
    ) -> None:
        """A launch call of 10 µs and the work it started."""
        self._next += 1
        link = self._next
        self.events.append(slice_of("cuda_runtime", call, tid, ts, 10, correlation=link))
        self.events.append(device_slice(cat, kernel, stream, at, dur, link))


def one_step(work: Work, number: int) -> None:
    """The events of step ``number``."""
    at = number * STEP_US
    step = slice_of("user_annotation", f"ProfilerStep#{number}", MAIN, at, STEP_US)
    loader = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
    work.events += [step, slice_of("user_annotation", loader, MAIN, at + 50, 4_000)]
    work.op("aten::copy_", MAIN, at + 4_100, 60, [[64, 512], [64, 512]])
    work.launched(
        "cudaMemcpyAsync",
        MAIN,
        at + 4_120,
        "gpu_memcpy",
        "Memcpy HtoD (Pinned -> Device)",
        _COPY_STREAM,
        at + 4_200,
        400,
    )
    work.op("aten::linear", MAIN, at + 4_300, 200, [[64, 512], [512, 512]])
    work.op("aten::addmm", MAIN, at + 4_320, 150, [[512], [64, 512], [512, 512]])
    work.launched(
        "cudaLaunchKernel",
        MAIN,
        at + 4_340,
        "kernel",
        "ampere_sgemm_128x64_tn",
        _STREAM,
        at + 4_600,
        1_200,
    )
    work.op("aten::relu", MAIN, at + 4_600, 80, [[64, 512]])
    work.launched(
        "cudaLaunchKernel",
        MAIN,
        at + 4_620,
        "kernel",
        "void at::native::vectorized_elementwise_kernel<4, at::native::relu>",
        _STREAM,
        at + 5_800,
        200,
    )
    backward = "autograd::engine::evaluate_function: AddmmBackward0"
    work.op(backward, AUTOGRAD, at + 5_000, 400)
    work.op("aten::mm", AUTOGRAD, at + 5_050, 150, [[512, 64], [64, 512]])
    work.launched(
        "cudaLaunchKernel",
        AUTOGRAD,
        at + 5_080,
        "kernel",
        "ampere_sgemm_64x64_nt",
        _STREAM,
        at + 6_000,
        1_600,
    )
    work.op("nccl:all_reduce", AUTOGRAD, at + 5_600, 100, [[262144]])
    work.launched(
        "cudaLaunchKernel",
        AUTOGRAD,
        at + 5_620,
        "kernel",
        "ncclDevKernel_AllReduce_Sum_f32_RING_LL",
        _NCCL_STREAM,
        at + 7_200,
        800,
    )
    optimizer = slice_of("user_annotation", "Optimizer.step#SGD.step", MAIN, at + 8_000, 500)
    work.events.append(optimizer)
    work.op("aten::_foreach_add_", MAIN, at + 8_050, 100)
    work.launched(
        "cudaLaunchKernel",
        MAIN,
        at + 8_070,
        "kernel",
        "void at::native::multi_tensor_apply_kernel<at::native::sgd>",
        _STREAM,
        at + 8_200,
        300,
    )
    # What the forward pass takes is given back; the buffer that backward takes is not.
    forward, buffer = 0x7F00_0000_0000, 0x7F10_0000_0000 + (number << 20)
    work.events.append(memory_event(at + 4_350, MAIN, forward, 4 << 20))
    work.events.append(memory_event(at + 5_060, AUTOGRAD, buffer, 1 << 20))
    work.events.append(memory_event(at + 8_060, MAIN, forward, -(4 << 20)))


def memory_event(ts: float, tid: int, address: int, size: int) -> Event:
    """One allocation, or a free where ``size`` is negative."""
    args = {"Addr": address, "Bytes": size, "Device Type": 1, "Device Id": 0}
    return {
        "ph": "i",
        "cat": "cpu_instant_event",
        "s": "t",
        "name": "[memory]",
        "pid": HOST,
        "tid": tid,
        "ts": ts,
        "args": args,
    }


def names() -> list[Event]:
    """What the processes and threads are called."""

    def meta(what: str, pid: int, tid: int, name: str) -> Event:
        return {"ph": "M", "name": what, "pid": pid, "tid": tid, "ts": 0, "args": {"name": name}}

    return [
        meta("process_name", HOST, 0, "python"),
        meta("thread_name", HOST, MAIN, "main"),
        meta("thread_name", HOST, AUTOGRAD, "autograd"),
        meta("process_name", 0, 0, "python"),
        *(meta("thread_name", 0, s, f"stream {s}") for s in (_STREAM, _COPY_STREAM, _NCCL_STREAM)),
    ]


def small_trace() -> str:
    """The whole trace as JSON text."""
    work = Work()
    for number in range(NUM_STEPS):
        one_step(work, number)
    header = {
        "schemaVersion": 1,
        "deviceProperties": [{"id": 0, "name": "example GPU"}],
        "distributedInfo": {"backend": "nccl", "rank": 0, "world_size": 1},
        "baseTimeNanoseconds": 0,
    }
    lines = ",\n".join(json.dumps(event) for event in names() + work.events)
    return json.dumps(header)[:-1] + ', "traceEvents": [\n' + lines + "\n]}\n"


def main() -> None:
    """Write the examples."""
    EXAMPLES.mkdir(parents=True, exist_ok=True)
    text = small_trace()
    (EXAMPLES / "small.json").write_text(text, encoding="utf-8")
    # A process that died while it wrote: the last third is missing, in the middle of an event.
    (EXAMPLES / "cut.json").write_text(text[: len(text) * 2 // 3], encoding="utf-8")


if __name__ == "__main__":
    main()
