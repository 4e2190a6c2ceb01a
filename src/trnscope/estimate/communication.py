"""The collectives that a layout adds to a step, and the step with them. All times in ns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from trnscope.estimate.layout import Layout
from trnscope.estimate.recorded import OptimizerWork, TensorCollective, Unit
from trnscope.sim.signature import CollectiveKind, CollectiveSpec, ExecutionCost

BUCKET_BYTES = 25 << 20
"""Gradients that data parallel training reduces at once: the default of torch's DDP."""


class CollectiveCosts(Protocol):
    """What the cost model answers."""

    def collective(self, spec: CollectiveSpec) -> ExecutionCost:
        """A collective's cost."""


@dataclass(frozen=True)
class Transfer:
    """Collectives of one kind and size."""

    kind: CollectiveKind
    num_bytes: int
    num_ranks: int
    time_ns: int
    host_ns: int

    def to_json(self, count: int) -> dict[str, object]:
        """A member of ``collectives``: so many that are equal."""
        return {
            "count": count,
            "kind": self.kind,
            "bytes": self.num_bytes,
            "ranks": self.num_ranks,
            "duration_ns": self.time_ns,
            "host_ns": self.host_ns,
        }


@dataclass(frozen=True)
class Communication:
    """The collectives of a step, in order."""

    forward: tuple[Transfer, ...]
    backward: tuple[Transfer, ...]
    """Gathers in the order of their use, then reductions in the order in which they are ready."""
    tensor: tuple[Transfer, ...] = ()
    """Within the layers, where the work before and after waits for them: nothing hides them."""

    @property
    def all(self) -> tuple[Transfer, ...]:
        """Of the whole step."""
        return self.forward + self.backward + self.tensor

    @property
    def time_ns(self) -> int:
        """All of them, one after the other."""
        return sum(one.time_ns for one in self.all)

    @property
    def host_ns(self) -> int:
        """The host's launches."""
        return sum(one.host_ns for one in self.all)


def communication(
    units: Sequence[Unit],
    layout: Layout,
    costs: CollectiveCosts,
    num_calls: int = 1,
    within: Sequence[TensorCollective] = (),
) -> Communication:
    """Gathers of parameters for each of the ``num_calls``; gradients are reduced once a step.

    ``within``: a step's collectives within the layers of a tensor parallel group.
    """

    def transfer(kind: CollectiveKind, num_bytes: int, num_ranks: int) -> Transfer:
        cost = costs.collective(CollectiveSpec(kind, num_bytes, num_ranks))
        return Transfer(kind, num_bytes, num_ranks, cost.device_ns, cost.host_ns)

    gathers: list[Transfer] = []
    reductions: list[Transfer] = []
    trained = [unit for unit in reversed(units) if unit.gradient_bytes]
    if layout.fsdp > 1:
        held = [unit for unit in units if unit.parameter_bytes]
        gathers = [transfer("all_gather", u.parameter_bytes, layout.fsdp) for u in held] * num_calls
        reductions += [transfer("reduce_scatter", u.gradient_bytes, layout.fsdp) for u in trained]
    if layout.dp > 1:
        sizes = _buckets(trained, layout)
        reductions += [transfer("all_reduce", num_bytes, layout.dp) for num_bytes in sizes]
    again = gathers[::-1] if trained else []
    tensor = [
        one
        for sent in within
        for one in [transfer(sent.kind, sent.num_bytes, layout.tp)] * sent.count
    ]
    return Communication(tuple(gathers), tuple(again + reductions), tuple(tensor))


def _buckets(trained: Sequence[Unit], layout: Layout) -> list[int]:
    """A shard of each unit; without sharding buckets of DDP's size."""
    if layout.fsdp > 1:
        return [-(-unit.gradient_bytes // layout.fsdp) for unit in trained]
    whole, rest = divmod(sum(unit.gradient_bytes for unit in trained), BUCKET_BYTES)
    return [BUCKET_BYTES] * whole + ([rest] if rest else [])


@dataclass(frozen=True)
class Phases:
    """A step's time on a core that does all by itself."""

    forward_ns: int
    """And all else that is neither of the other two."""
    backward_ns: int
    optimizer_ns: int

    @property
    def total_ns(self) -> int:
        """The step."""
        return self.forward_ns + self.backward_ns + self.optimizer_ns


@dataclass(frozen=True)
class LayoutTime:
    """A step with its collectives."""

    step_ns: int
    """With the collectives overlapped as well as they can be."""
    serial_ns: int
    """With none of them overlapped."""
    exposed_ns: int
    """Of ``step_ns``: what is left of the collectives beside the work, launches included."""


def layout_time(phases: Phases, sent: Communication, optimizer_ns: int) -> LayoutTime:
    """The step when collectives run beside the work of their phase.

    The first gather of each phase has nothing to run beside, and neither has the last reduction,
    nor has what is sent within a layer; the host's launches add to the step.
    """
    exposed_ns = _exposed(sent.forward, phases.forward_ns, tail=False)
    exposed_ns += _exposed(sent.backward, phases.backward_ns, tail=True)
    exposed_ns += sum(one.time_ns for one in sent.tensor)
    work_ns = phases.forward_ns + phases.backward_ns + optimizer_ns + sent.host_ns
    return LayoutTime(work_ns + exposed_ns, work_ns + sent.time_ns, exposed_ns + sent.host_ns)


def _exposed(sent: Sequence[Transfer], work_ns: int, *, tail: bool) -> int:
    if not sent:
        return 0
    alone_ns = 0
    inner = list(sent)
    if inner[0].kind == "all_gather":
        alone_ns += inner.pop(0).time_ns
    if tail and inner and inner[-1].kind != "all_gather":
        alone_ns += inner.pop().time_ns
    beside_ns = sum(one.time_ns for one in inner)
    return alone_ns + max(0, beside_ns - work_ns)


def sharded_optimizer_ns(optimizer_ns: int, work: Sequence[OptimizerWork], num_shards: int) -> int:
    """The optimizer's step when each core steps its shard: dispatch stays, bytes are divided."""
    whole = sum(one.count * max(one.host_ns, one.device_ns) for one in work)
    if num_shards == 1 or whole == 0:
        return optimizer_ns
    part = sum(one.count * max(one.host_ns, _shard_ns(one, num_shards)) for one in work)
    return round(optimizer_ns * part / whole)


def _shard_ns(one: OptimizerWork, num_shards: int) -> int:
    fixed_ns = min(one.fixed_ns, one.device_ns)
    return fixed_ns + round((one.device_ns - fixed_ns) / num_shards)
