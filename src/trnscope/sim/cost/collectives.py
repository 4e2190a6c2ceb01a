"""Time of a collective: latency + bytes / bandwidth, by number of ranks and size.

Three latencies exist and are kept apart: in a graph, back to back; the runtime's barrier that every
execution of a graph with a world collective pays once; and the launch, which is the host's.

Each law names the chip on which it was measured. No table of trn2, trn3 or inf2 within a graph is
public: they borrow trn1's, and :attr:`CollectiveModel.borrowed` says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log2

from trnscope.hardware.neuroncore import Instance, Numbers, read_neuron_file
from trnscope.sim.signature import CollectiveSpec

ALL_REDUCE_SHARE = {
    "all_reduce": 1.0,
    "all_gather": 0.5,
    "reduce_scatter": 0.5,
    "all_to_all": 0.5,
    "broadcast": 0.5,
    "reduce": 0.5,
    "send": 0.5,
    "recv": 0.5,
}
"""Bytes on the wire relative to an all-reduce, which is a reduce-scatter and an all-gather."""


TITLES = {
    "in_graph": "time of a collective within a graph",
    "inter_node": "time of a collective between nodes",
    "barrier": "barrier before a graph with collectives",
    "compiled": "cost of each collective of a compiled model",
}
"""What each table of laws gives."""


@dataclass(frozen=True)
class Borrowed:
    """A law that was measured on another chip."""

    law: str
    """What it gives, in words."""
    chip: str
    """Where it was measured."""
    user: str
    """The chip that has none of its own."""

    def __str__(self) -> str:
        """In a sentence."""
        return f"{self.law}: borrowed from {self.chip}, none of {self.user} is public"


@dataclass(frozen=True)
class Regime:
    """Up to ``max_bytes`` (0: no limit)."""

    max_bytes: int
    latency_ns: float
    bytes_per_ns: float

    def time(self, num_bytes: float) -> float:
        """The law itself."""
        return self.latency_ns + num_bytes / self.bytes_per_ns


class CollectiveModel:
    """Times of collectives on one instance type."""

    def __init__(self, instance: Instance) -> None:
        tables = read_neuron_file("collectives")
        self.instance = instance
        self.numbers = Numbers(tables, "collectives.toml")
        self.laws = {
            int(row["ranks"]): tuple(
                Regime(int(r["max_bytes"]), float(r["latency_ns"]), float(r["bytes_per_ns"]))
                for r in row["regimes"]
            )
            for row in tables["in_graph"]
        }

    @property
    def borrowed(self) -> tuple[Borrowed, ...]:
        """Laws that this instance's chip has from another one."""
        measured_on: dict[str, str] = self.numbers.tables["measured_on"]
        chip = self.instance.core.name
        used = {law: measured_on[law] for law in ("in_graph", "inter_node", "compiled")}
        used["barrier"] = measured_on[f"barrier_{self._barrier_chip}"]
        return tuple(Borrowed(TITLES[law], at, chip) for law, at in used.items() if at != chip)

    @property
    def borrowed_from(self) -> str | None:
        """The chip on which a collective's time within a graph was measured; None: this one."""
        measured_on: str = self.numbers.tables["measured_on"]["in_graph"]
        return None if measured_on == self.instance.core.name else measured_on

    @property
    def _barrier_chip(self) -> str:
        return "trn1" if self.instance.core.generation == "NCv2" else "trn2"

    def in_graph_ns(self, spec: CollectiveSpec) -> float:
        """The collective itself, barrier and launch not counted."""
        if spec.num_ranks <= 1:
            return 0.0
        size = spec.num_bytes * ALL_REDUCE_SHARE[spec.kind]
        if spec.num_ranks > self.instance.num_logical_cores:
            return self._between_nodes(size)
        known = sorted(self.laws)
        if spec.num_ranks > known[-1]:
            return self._beyond(spec.num_ranks, size)
        below = max((n for n in known if n <= spec.num_ranks), default=known[0])
        above = min(n for n in known if n >= spec.num_ranks)
        low, high = self._law(below, size), self._law(above, size)
        if below == above:
            return low
        share = log2(spec.num_ranks / below) / log2(above / below)
        return low + (high - low) * share

    @property
    def hand_over_ns(self) -> float:
        """From an engine's result to the collective and from there to an engine: operands pass
        through HBM, by one transfer there and one back."""
        dma = self.instance.core.dma
        there = dma.engine_to_trigger_ns + dma.trigger_ns + dma.completion_ns
        return there + dma.trigger_ns + dma.completion_ns + dma.done_to_engine_ns

    def time_ns(self, spec: CollectiveSpec, regime: str = "in_graph") -> float:
        """By regime: ``in_graph``, ``handed_over``, ``old_runtime`` or ``between_nodes``.

        ``handed_over`` is within a graph, with engines at work before and after.
        """
        if spec.num_ranks <= 1:
            return 0.0
        if regime == "handed_over":
            return self.in_graph_ns(spec) + self.hand_over_ns
        size = spec.num_bytes * ALL_REDUCE_SHARE[spec.kind]
        if regime == "between_nodes":
            return self._between_nodes(size)
        if regime == "old_runtime":
            get = self.numbers.get
            return get("old_runtime", "latency_ns") + size / get("old_runtime", "bytes_per_ns")
        return self.in_graph_ns(spec)

    @property
    def compiled_ns(self) -> float:
        """For each collective of a compiled model, beside its own time."""
        return self.numbers.get("compiled", "collective_ns")

    def barrier_ns(self, num_ranks: int, *, hardware: bool = False) -> float:
        """What an execution of a graph with a collective pays before it starts."""
        chips = num_ranks * self.instance.lnc / self.instance.core.cores_per_chip
        if num_ranks <= 1:
            return 0.0
        section = f"barrier.{self._barrier_chip}"
        pair = self.numbers.get("pair", "barrier_ns")
        if num_ranks <= 2 or chips < 1:
            return pair
        base, slope = (self._barrier(section, key) for key in ("base_ns", "per_doubling_ns"))
        factor = self._barrier(section, "hardware_factor") if hardware else 1.0
        return max(pair, (base + slope * log2(chips)) * factor)

    def of_a_graph_ns(self, specs: Sequence[CollectiveSpec]) -> float:
        """All collectives of a compiled graph: each in turn, and one barrier for the largest group.

        Nothing hides them: they stand between work that needs their results.
        """
        sent = [spec for spec in specs if spec.num_ranks > 1]
        if not sent:
            return 0.0
        each = sum(self.in_graph_ns(spec) + self.compiled_ns for spec in sent)
        return each + self.barrier_ns(max(spec.num_ranks for spec in sent))

    def _barrier(self, section: str, key: str) -> float:
        table, name = section.split(".")
        return float(self.numbers.tables[table][name][key]["value"])

    def _law(self, ranks: int, size: float) -> float:
        """More bytes never take less, also where one regime ends and another begins."""
        least = 0.0
        for regime in self.laws[ranks]:
            if not regime.max_bytes or size <= regime.max_bytes:
                return max(least, regime.time(size))
            least = max(least, regime.time(regime.max_bytes))
        return max(least, self.laws[ranks][-1].time(size))

    def _beyond(self, ranks: int, size: float) -> float:
        """More ranks than in any table: the largest group's law, with the bytes that so many ranks
        send, and for each doubling the latency that the last one in the table adds."""
        before, most = sorted(self.laws)[-2:]
        share = (1 - 1 / ranks) / (1 - 1 / most)
        step = self.laws[most][0].latency_ns - self.laws[before][0].latency_ns
        doublings = log2(ranks / most)
        return self._law(most, size * share) + doublings * step / log2(most / before)

    def _between_nodes(self, size: float) -> float:
        """Grows with each doubling up to a plateau, and then with the bytes."""

        def get(key: str) -> float:
            return self.numbers.get("inter_node", key)

        doublings = max(0.0, log2(max(1.0, size / get("latency_bytes"))))
        small = min(get("plateau_ns"), get("latency_ns") + doublings * get("per_doubling_ns"))
        if small < get("plateau_ns"):
            return small
        return max(small, get("large_base_ns") + size / get("large_bytes_per_ns"))
