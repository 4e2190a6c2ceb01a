"""Answers the device's questions about costs, and remembers which signature has which number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from trnscope.sim.signature import (
    Attribute,
    CollectiveKind,
    CollectiveSpec,
    ExecutionCost,
    GraphSpec,
    OpSignature,
    TensorSpec,
)

RawTensor = tuple[tuple[int, ...], str, tuple[int, ...] | None]
"""Shape, type, strides (None: contiguous), as ``csrc/describe.cpp`` gives them."""
Answer = tuple[int, int, int, bool]
"""Host, device and compile time in ns, and whether the op falls back to the CPU."""


class CostSource(Protocol):
    """What a cost model must answer; :class:`trnscope.sim.cost.CostModel` is one."""

    def op(self, op: OpSignature) -> ExecutionCost:
        """An eager op."""

    def copy(self, kind: str, num_bytes: int) -> ExecutionCost:
        """A copy: ``h2d``, ``d2h`` or ``d2d``."""

    def graph(self, graph: GraphSpec) -> ExecutionCost:
        """A compiled graph."""

    def collective(self, spec: CollectiveSpec) -> ExecutionCost:
        """A collective."""


@dataclass(frozen=True)
class Priced:
    """A signature of the device's table and what it costs."""

    name: str
    signature: OpSignature | GraphSpec | CollectiveSpec | None
    """None: a copy."""
    cost: ExecutionCost


class PriceList:
    """The device asks it once for each signature; what it answered is kept by number."""

    def __init__(self, source: CostSource) -> None:
        self.source = source
        self._rows: dict[int, Priced] = {}

    def op(
        self,
        number: int,
        name: str,
        inputs: Sequence[RawTensor | None],
        outputs: Sequence[RawTensor],
        attributes: Sequence[tuple[str, Attribute]],
    ) -> Answer:
        """The cost of an op; called by the device."""
        signature = OpSignature(
            name,
            tuple(None if raw is None else TensorSpec(*raw) for raw in inputs),
            tuple(TensorSpec(*raw) for raw in outputs),
            tuple(attributes),
        )
        return self._keep(number, Priced(name, signature, self.source.op(signature)))

    def copy(self, number: int, kind: str, num_bytes: int) -> Answer:
        """The cost of a copy; called by the device."""
        return self._keep(number, Priced(f"Memcpy {kind}", None, self.source.copy(kind, num_bytes)))

    def collective(
        self, number: int, kind: CollectiveKind, num_bytes: int, num_ranks: int, dtype: str
    ) -> Answer:
        """The cost of a collective; called by the device."""
        spec = CollectiveSpec(kind, num_bytes, num_ranks, dtype)
        return self._keep(number, Priced(kind, spec, self.source.collective(spec)))

    def keep(self, number: int, priced: Priced) -> None:
        """Remember a graph that was given this number."""
        self._keep(number, priced)

    def row(self, number: int) -> Priced | None:
        """What has this number; None where it was never asked for."""
        return self._rows.get(number)

    def _keep(self, number: int, priced: Priced) -> Answer:
        self._rows[number] = priced
        cost = priced.cost
        return cost.host_ns, cost.device_ns, cost.compile_ns, cost.on_cpu
