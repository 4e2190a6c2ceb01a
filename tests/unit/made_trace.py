"""Makes small traces call by call: a host clock that goes on, and device streams that follow.

Times are µs. A launch takes its host time; its work starts when it is launched and its stream
is free.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from trnscope.model.kinds import DeviceKind, SliceKind
from trnscope.opened import OpenedProfile
from trnscope.store.builder import TraceBuilder

Body = Callable[[], None]
LATENCY_US = 5
"""From the start of a launch to the start of its work, on a free stream."""


class MadeTrace:
    """One process with one main thread, and a device if anything is launched."""

    def __init__(
        self,
        folder: Path,
        device: str = "NVIDIA A100-SXM4-80GB",
        kind: DeviceKind = DeviceKind.CUDA,
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.builder = TraceBuilder(folder)
        self.thread = self.builder.thread()
        self.now = 0
        self._main = self.thread
        self._device = device
        self._kind = kind
        self._streams: dict[int, int] = {}
        self._free: dict[int, int] = {}
        self._correlation = 0
        self._num_steps = 0

    def step(self, body: Body) -> None:
        """A ``ProfilerStep``; it lasts as long as the host takes for the body."""
        name = f"ProfilerStep#{self._num_steps}"
        self._num_steps += 1
        self._around(name, SliceKind.ANNOTATION, body)

    def steps(self, number: int, body: Body) -> MadeTrace:
        """Several equal steps."""
        for _ in range(number):
            self.step(body)
        return self

    def op(self, name: str, us: int = 0, body: Body | None = None, **attributes: str | int) -> None:
        """An op that takes ``us`` itself, after what is in it."""
        self._around(name, SliceKind.CPU_OP, self._and_then(body, us), **attributes)

    def range(self, name: str, us: int = 0, body: Body | None = None) -> None:
        """An annotation."""
        self._around(name, SliceKind.ANNOTATION, self._and_then(body, us))

    def frame(self, name: str, us: int = 0, body: Body | None = None) -> None:
        """A Python frame."""
        self._around(name, SliceKind.PYTHON, self._and_then(body, us))

    def call(self, name: str, us: int) -> None:
        """A runtime call that launches nothing."""
        self._around(name, SliceKind.RUNTIME, lambda: self.gap(us))

    def gap(self, us: int) -> None:
        """Time in which the host shows nothing."""
        self.now += us

    def launch(
        self,
        device_us: int,
        name: str = "kernel",
        *,
        kind: SliceKind = SliceKind.KERNEL,
        stream: int = 7,
        host_us: int = 5,
        call: str = "cudaLaunchKernel",
        blocking: bool = False,
        **attributes: str | int,
    ) -> None:
        """Device work with its launch, and attributes of the work; a blocking call returns when the
        work is done."""
        self._correlation += 1
        start = self.now
        begin = max(start + LATENCY_US, self._free.get(stream, 0))
        self._free[stream] = begin + device_us
        self.now = self._free[stream] if blocking else start + host_us
        ids = {"correlation": self._correlation}
        self._add(self.thread, call, start, self.now, SliceKind.RUNTIME, **ids)
        self._add(self._stream(stream), name, begin, begin + device_us, kind, **ids, **attributes)

    def wait(self, name: str = "cudaStreamSynchronize") -> None:
        """Wait until all device work is done."""
        start = self.now
        self.now = max([self.now + 1, *self._free.values()])
        self._add(self.thread, name, start, self.now, SliceKind.RUNTIME)

    def on_thread(self, thread: int, body: Body) -> None:
        """Have another thread do something, while this one waits for it."""
        self.thread = thread
        body()
        self.thread = self._main

    def open(self, **health: object) -> OpenedProfile:
        """The finished trace."""
        return OpenedProfile((self.builder.build(**health),))  # type: ignore[arg-type]

    def _stream(self, stream: int) -> int:
        if stream not in self._streams:
            self._streams[stream] = self.builder.stream(0, stream, self._kind, name=self._device)
        return self._streams[stream]

    def _and_then(self, body: Body | None, us: int) -> Body:
        def run() -> None:
            if body is not None:
                body()
            self.gap(us)

        return run

    def _around(self, name: str, kind: SliceKind, body: Body, **attributes: str | int) -> None:
        start = self.now
        body()
        self._add(self.thread, name, start, self.now, kind, **attributes)

    def _add(
        self, track: int, name: str, start: int, end: int, kind: SliceKind, **attributes: str | int
    ) -> None:
        self.builder.slice(track, name, start * 1000, (end - start) * 1000, kind, **attributes)
