"""Samples the real host: how busy its processors are and how much of its memory is in use.

These are measurements on the real clock, the one part of a simulated profile that is not made
up. They are kept apart from everything in virtual time and say which clock they are of.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

PERIOD_S = 0.05
_STAT = Path("/proc/stat")
_MEMINFO = Path("/proc/meminfo")


@dataclass(frozen=True)
class CpuSample:
    """Share of the last period in which one processor was busy. Times are epoch ns, real."""

    time_ns: int
    duration_ns: int
    cpu: int
    busy_ratio: float


@dataclass(frozen=True)
class MemorySample:
    """Memory of the host in use, whoever uses it. Time is epoch ns, real."""

    time_ns: int
    used_bytes: int
    total_bytes: int


@dataclass(frozen=True)
class HostSamples:
    """What was sampled; empty where the host does not tell (it is no Linux) or was not asked."""

    cpu: tuple[CpuSample, ...] = ()
    memory: tuple[MemorySample, ...] = ()


def parse_stat(text: str) -> dict[int, tuple[int, int]]:
    """Busy and all ticks by processor, from ``/proc/stat``."""
    found = {}
    for line in text.splitlines():
        name, *fields = line.split()
        if name.startswith("cpu") and name != "cpu" and len(fields) >= 5:
            # user nice system idle iowait irq softirq steal; guest time is in user already.
            ticks = [int(field) for field in fields[:8]]
            idle = ticks[3] + ticks[4]
            found[int(name[3:])] = (sum(ticks) - idle, sum(ticks))
    return found


def parse_meminfo(text: str) -> tuple[int, int] | None:
    """Used and total bytes, from ``/proc/meminfo``; used is what is not available."""
    kib = {}
    for line in text.splitlines():
        key, _, value = line.partition(":")
        if key in ("MemTotal", "MemAvailable"):
            kib[key] = int(value.split()[0]) * 1024
    if len(kib) < 2:
        return None
    return kib["MemTotal"] - kib["MemAvailable"], kib["MemTotal"]


class HostSampler:
    """Samples on a thread of its own between :meth:`start` and :meth:`stop`."""

    def __init__(
        self,
        *,
        cpu: bool,
        memory: bool,
        period_s: float = PERIOD_S,
        clock: Callable[[], int] = time.time_ns,
    ) -> None:
        self._wants = (cpu and _STAT.exists(), memory and _MEMINFO.exists())
        self._period_s = period_s
        self._clock = clock
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._cpu: list[CpuSample] = []
        self._memory: list[MemorySample] = []
        self._last: tuple[int, dict[int, tuple[int, int]]] | None = None

    def start(self) -> None:
        """Start sampling, where there is anything to sample."""
        if not any(self._wants):
            return
        self._sample()
        self._thread = threading.Thread(target=self._run, name="trnscope-host", daemon=True)
        self._thread.start()

    def stop(self) -> HostSamples:
        """Stop; a last sample is taken."""
        if self._thread is not None:
            self._stop.set()
            self._thread.join()
            self._thread = None
            self._sample()
        return HostSamples(tuple(self._cpu), tuple(self._memory))

    def _run(self) -> None:
        while not self._stop.wait(self._period_s):
            self._sample()

    def _sample(self) -> None:
        wants_cpu, wants_memory = self._wants
        now = self._clock()
        if wants_cpu:
            self._sample_cpu(now, parse_stat(_STAT.read_text(encoding="ascii")))
        if wants_memory:
            memory = parse_meminfo(_MEMINFO.read_text(encoding="ascii"))
            if memory is not None:
                self._memory.append(MemorySample(now, *memory))

    def _sample_cpu(self, now: int, ticks: dict[int, tuple[int, int]]) -> None:
        if self._last is not None:
            before_ns, before = self._last
            for cpu, (busy, total) in ticks.items():
                last_busy, last_total = before.get(cpu, (busy, total))
                if total > last_total:
                    ratio = (busy - last_busy) / (total - last_total)
                    self._cpu.append(CpuSample(before_ns, now - before_ns, cpu, ratio))
        self._last = (now, ticks)
