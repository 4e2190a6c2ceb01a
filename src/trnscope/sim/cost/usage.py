"""What a list of executions adds up to: time, work, model FLOPs utilisation and what binds it.

Pure functions over costs; everything is simulated.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from trnscope.sim.cost.model import CostModel
from trnscope.sim.signature import ExecutionCost

BUSY_SHARE = 0.5
"""An engine that is busy for less than half of an execution does not bind it: its latencies do."""


@dataclass(frozen=True)
class Usage:
    """Executions in program order on one logical core."""

    total_ns: int
    """From the first dispatch to the end of the last execution."""
    host_ns: int
    """The host's dispatch, all together."""
    device_ns: int
    """Time in which the core executes something."""
    flops: int
    hbm_bytes: int
    engine_ns: dict[str, int] = field(default_factory=dict)
    """Busy time by engine."""
    binding_ns: dict[str, int] = field(default_factory=dict)
    """Time by what binds it; adds up to the larger of host and device of each execution."""

    @property
    def binding(self) -> str | None:
        """What binds most of the time; None without executions."""
        return max(self.binding_ns, key=lambda name: self.binding_ns[name], default=None)

    def mfu_ratio(self, peak_flops: float) -> float:
        """FLOPs of the matrix engine over what the peak would do in the whole time."""
        return self.flops / (peak_flops * self.total_ns / 1e9) if self.total_ns else 0.0

    def mfu_device_ratio(self, peak_flops: float) -> float:
        """The same over the device's time alone."""
        return self.flops / (peak_flops * self.device_ns / 1e9) if self.device_ns else 0.0


def binding_of(cost: ExecutionCost) -> str:
    """``host``, an engine's name, ``dma``, or ``latency`` where nothing is busy half the time."""
    if cost.host_ns >= cost.device_ns:
        return "host"
    busiest = max(cost.engine_ns, key=lambda name: cost.engine_ns[name], default=None)
    if busiest is None or cost.engine_ns[busiest] < BUSY_SHARE * cost.device_ns:
        return "latency"
    return busiest


def total_ns(costs: Sequence[ExecutionCost], model: CostModel) -> int:
    """End of the last execution: the host runs ahead by the eager queue's depth and no further."""
    runtime = model.runtime
    host = free = 0
    ends: list[int] = []
    for cost in costs:
        if len(ends) >= runtime.eager_queue_depth:
            host = max(host, ends[-runtime.eager_queue_depth])
        host += cost.host_ns
        if cost.on_cpu or not cost.device_ns:
            continue
        free = max(host + runtime.launch_latency_ns, free) + cost.device_ns
        ends.append(free)
    return max(host, free)


def usage(costs: Iterable[ExecutionCost], model: CostModel) -> Usage:
    """Adds up executions; compilation is not counted."""
    listed = list(costs)
    engines: Counter[str] = Counter()
    binding: Counter[str] = Counter()
    for cost in listed:
        engines.update(cost.engine_ns)
        if cost.host_ns or cost.device_ns:
            binding[binding_of(cost)] += max(cost.host_ns, cost.device_ns)
    return Usage(
        total_ns(listed, model),
        sum(cost.host_ns for cost in listed),
        sum(cost.device_ns for cost in listed),
        sum(cost.flops for cost in listed),
        sum(cost.hbm_read_bytes + cost.hbm_write_bytes for cost in listed),
        dict(engines),
        dict(binding),
    )


def peak_flops(model: CostModel, dtype: str) -> float | None:
    """Peak of one logical core in a type, None where no figure is known."""
    peaks = dict(model.core.peak_flops)
    per_core = peaks.get("float8" if dtype.startswith("float8") else dtype)
    return None if per_core is None else per_core * model.instance.lnc
