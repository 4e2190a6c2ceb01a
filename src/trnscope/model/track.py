"""A track: the slices of one context, such as a thread or a stream."""

from __future__ import annotations

from dataclasses import dataclass

from trnscope.model.kinds import DeviceKind, TrackKind


@dataclass(frozen=True)
class Device:
    """One device of one rank."""

    kind: DeviceKind
    index: int
    name: str | None = None
    """Product name, where the trace gives one."""
    simulated: bool = False

    @property
    def label(self) -> str:
        """``cuda:0``, as torch writes it."""
        return f"{self.kind.name.lower()}:{self.index}"


@dataclass(frozen=True)
class Track:
    """One track. ``process`` and ``thread`` are the writer's own ids, kept as text."""

    kind: TrackKind
    process: str
    thread: str
    process_name: str | None = None
    thread_name: str | None = None
    sort_index: int | None = None
    device: Device | None = None
    stream: int | None = None
    """Stream, queue or engine number on the device; null on a host track."""
