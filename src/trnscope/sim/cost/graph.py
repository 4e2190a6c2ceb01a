"""A compiled graph as one program: chains are fused and values stay on the chip where they fit.

Element-wise ops and reductions that feed one another share their tiles: one load, a chain of
passes, one store. A matrix product takes the element-wise ops that follow it on its way out of
PSUM. A value that a later group reads stays in SBUF if there is room for it until its last use;
otherwise it is stored to HBM and loaded again (a spill). Views cost nothing. Ops that fall back to
the CPU and collectives take their operands from HBM, and nothing is fused across them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from trnscope.hardware.neuroncore import NeuronCore
from trnscope.sim.cost.lowering import registry
from trnscope.sim.cost.lowering.work import (
    Access,
    Lowered,
    MatmulStage,
    MoveStage,
    Pass,
    RowStage,
    Stage,
    numel,
)
from trnscope.sim.cost.program import Loop, Program, item_bytes
from trnscope.sim.cost.tiling import PARTITIONS, TileBuilder
from trnscope.sim.signature import CollectiveSpec, GraphNode, GraphSpec, OpSignature

RESIDENT_SHARE = 0.5
"""Share of SBUF for values that wait for a later group."""
MAX_FUSED_PASSES = 24
"""Passes of one group: longer chains are cut, as their tiles would not fit."""


@dataclass
class _Group:
    """Stages that share their tiles."""

    stage: Stage
    reads: dict[int, Access] = field(default_factory=dict)
    """Values from outside, by number."""
    makes: dict[int, Access] = field(default_factory=dict)
    elements: int = 0
    num_passes: int = 0


@dataclass
class _Outside:
    """Nodes that are no work of the engines: what they read and make is in HBM."""

    on_cpu: list[OpSignature] = field(default_factory=list)
    collectives: list[CollectiveSpec] = field(default_factory=list)
    reads: set[int] = field(default_factory=set)
    makes: set[int] = field(default_factory=set)

    def add(self, node: GraphNode, lowered: Lowered, inputs: Sequence[int | None]) -> None:
        """Notes a node."""
        if lowered.collective is not None:
            self.collectives.append(lowered.collective)
        else:
            self.on_cpu.append(node.op)
        self.reads.update(value for value in inputs if value is not None)
        self.makes.update(node.outputs)


@dataclass(frozen=True)
class LoweredGraph:
    """A graph's program and what runs beside it."""

    program: Program
    """Of one physical core."""
    on_cpu: tuple[OpSignature, ...]
    """Ops without an implementation on the device: the host computes them."""
    collectives: tuple[CollectiveSpec, ...]


def lower_graph(graph: GraphSpec, core: NeuronCore, shards: int) -> LoweredGraph:
    """The engines' program, with the nodes that are no work for them set apart."""
    outside = _Outside()
    groups, notes, aliases = _groups(graph, outside)
    outputs = {aliases.get(v, v) for v in graph.outputs} | outside.reads
    emitter = _Emitter(core, shards, groups, outputs, set(graph.inputs) | outside.makes)
    number = 0
    while number < len(groups):
        end = batched_run(groups, number, shards)
        if end > number + 1:
            emitter.emit_run(number, groups[number:end])
        else:
            emitter.emit(number, groups[number])
        number = end
    if outside.collectives:
        notes += (f"{len(outside.collectives)} collectives: timed beside the instructions",)
    program = emitter.program(graph.name, notes)
    return LoweredGraph(program, tuple(outside.on_cpu), tuple(outside.collectives))


# Grouping


def _groups(
    graph: GraphSpec, outside: _Outside
) -> tuple[list[_Group], tuple[str, ...], dict[int, int]]:
    groups: list[_Group] = []
    notes: dict[str, None] = {}
    aliases: dict[int, int] = {}
    closed = 0
    for node in graph.nodes:
        lowered = registry.lower(node.op)
        notes.update(dict.fromkeys(lowered.notes))
        inputs = tuple(None if v is None else aliases.get(v, v) for v in node.inputs)
        if lowered.on_cpu or lowered.collective is not None:
            outside.add(node, lowered, inputs)
            closed = len(groups)
            continue
        if not lowered.stages:
            source = next((v for v in inputs if v is not None), None)
            if source is not None:
                aliases.update(dict.fromkeys(node.outputs, source))
            continue
        for stage in lowered.stages:
            new = _group(node, inputs, _on_chip(node, stage))
            if not (len(groups) > closed and _join(groups[-1], new)):
                groups.append(new)
    return groups, tuple(notes), aliases


def _on_chip(node: GraphNode, stage: Stage) -> Stage:
    """In a graph, data that is only moved is a copy between tiles."""
    if not isinstance(stage, MoveStage) or any(a.indirect for a in (*stage.loads, *stage.stores)):
        return stage
    out = node.op.outputs[0]
    copied = Pass("TENSOR_COPY", "vector", numel(out), out.dtype)
    return RowStage(numel(out), out.dtype, (copied,), stage.loads, stage.stores)


def _group(node: GraphNode, inputs: Sequence[int | None], stage: Stage) -> _Group:
    group = _Group(stage)
    for access in _loads(stage):
        value = inputs[access.value] if 0 <= access.value < len(inputs) else None
        if value is not None:
            group.reads.setdefault(value, access)
    for access in _stores(stage):
        if 0 <= access.value < len(node.outputs):
            group.makes[node.outputs[access.value]] = access
    if isinstance(stage, RowStage):
        group.elements = stage.elements
        group.num_passes = len(stage.passes)
    elif isinstance(stage, MatmulStage):
        group.elements = stage.batch * stage.m * stage.n
        group.num_passes = len(stage.epilogue)
    return group


def _loads(stage: Stage) -> Iterable[Access]:
    found: list[Access] = list(stage.loads)
    if isinstance(stage, MatmulStage):
        found += [access for access in (stage.lhs, stage.rhs) if access is not None]
    return found


def _stores(stage: Stage) -> Iterable[Access]:
    if isinstance(stage, MatmulStage):
        return [access for access in (stage.out, *stage.stores) if access is not None]
    return stage.stores


def _join(group: _Group, new: _Group) -> bool:
    """Adds element-wise work to a group that feeds it; false where it cannot be."""
    if not isinstance(new.stage, RowStage) or not _fits(group, new):
        return False
    if isinstance(group.stage, RowStage):
        group.elements = max(group.elements, new.elements)
        group.stage = replace(
            group.stage,
            elements=group.elements,
            dtype=max(group.stage.dtype, new.stage.dtype, key=item_bytes),
            passes=group.stage.passes + new.stage.passes,
        )
    elif isinstance(group.stage, MatmulStage):
        group.stage = replace(group.stage, epilogue=group.stage.epilogue + new.stage.passes)
    for value, access in new.reads.items():
        if value not in group.makes:
            group.reads.setdefault(value, access)
    group.makes.update(new.makes)
    group.num_passes += new.num_passes
    return True


def _fits(group: _Group, new: _Group) -> bool:
    """The new work reads what the group makes and runs over the same elements."""
    if group.num_passes + new.num_passes > MAX_FUSED_PASSES:
        return False
    if any(isinstance(g.stage, RowStage) and g.stage.rows is not None for g in (group, new)):
        return False
    if not any(value in group.makes for value in new.reads):
        return False
    if isinstance(group.stage, RowStage):
        small, large = sorted((group.elements, new.elements))
        return small > 0 and large % small == 0
    return isinstance(group.stage, MatmulStage) and new.elements == group.elements


def merged(passes: tuple[Pass, ...]) -> tuple[Pass, ...]:
    """Passes that one instruction can do together, as the instruction set allows.

    Every engine converts types as it writes, so a cast beside another pass is free; TENSOR_SCALAR
    applies two operations; ACTIVATE scales and shifts its input and can sum its results as it goes;
    SCALAR_TENSOR_TENSOR applies a scalar before a tensor.
    """
    found: list[Pass] = []
    for number, work in enumerate(passes):
        after = passes[number + 1] if number + 1 < len(passes) else None
        if work.opcode == "CAST" and len(passes) > 1:
            continue
        if work.opcode == "TENSOR_SCALAR" and after is not None and _absorbs(work, after):
            continue
        if work.opcode == "TENSOR_REDUCE" and found and _accumulates(found[-1], work):
            found[-1] = replace(found[-1], opcode="ACTIVATE_REDUCE")
            continue
        found.append(work)
    return tuple(found) or passes[:1]


def _accumulates(work: Pass, after: Pass) -> bool:
    """Sums only: the Scalar engine cannot find extrema or products as it goes."""
    return work.opcode == "ACTIVATE" and after.sums and after.elements == work.elements


def _absorbs(work: Pass, after: Pass) -> bool:
    takers = ("ACTIVATE", "ACTIVATE_REDUCE", "TENSOR_TENSOR", "TENSOR_SCALAR")
    return after.opcode in takers and after.elements == work.elements


def batched_run(groups: Sequence[_Group], start: int, shards: int) -> int:
    """Where a chain of batched products that feed one another ends: attention, item by item."""
    first = groups[start].stage
    if not isinstance(first, MatmulStage) or first.batch < 2 * shards:
        return start + 1
    made = set(groups[start].makes)
    end = start + 1
    for number in range(start + 1, len(groups)):
        stage = groups[number].stage
        if made.isdisjoint(groups[number].reads) or not _divides(stage, first.batch):
            break
        made.update(groups[number].makes)
        if isinstance(stage, MatmulStage):
            end = number + 1
    return end


def _divides(stage: Stage, batch: int) -> bool:
    if isinstance(stage, MatmulStage):
        return stage.batch == batch
    return isinstance(stage, RowStage) and stage.rows is None and stage.elements % batch == 0


def _item(stage: Stage, batch: int) -> Stage:
    """The part of a stage that belongs to one item of the batch."""
    loads = tuple(_share(access, batch) for access in stage.loads)
    stores = tuple(_share(access, batch) for access in stage.stores)
    if isinstance(stage, MatmulStage):
        lhs, rhs, out = (
            None if access is None else _share(access, batch)
            for access in (stage.lhs, stage.rhs, stage.out)
        )
        epilogue = tuple(replace(p, elements=p.elements // batch) for p in stage.epilogue)
        return replace(
            stage, batch=1, lhs=lhs, rhs=rhs, out=out, epilogue=epilogue, loads=loads, stores=stores
        )
    if isinstance(stage, RowStage):
        passes = tuple(replace(p, elements=max(1, p.elements // batch)) for p in stage.passes)
        elements = stage.elements // batch
        return replace(stage, elements=elements, passes=passes, loads=loads, stores=stores)
    return stage


def _share(access: Access, batch: int) -> Access:
    if access.once:
        return access
    size = max(1, access.num_bytes // batch)
    return replace(access, num_bytes=size, run_bytes=min(size, access.run_bytes))


# Emission


class _Emitter:
    """Decides what stays on the chip and appends the groups' tiles and steps."""

    def __init__(
        self,
        core: NeuronCore,
        shards: int,
        groups: Sequence[_Group],
        outputs: set[int],
        inputs: set[int],
    ) -> None:
        self.builder = TileBuilder(core, shards)
        self.laid_out: dict[int, int] = {}
        self.outputs = outputs
        self.inputs = inputs
        self.room = int(core.sbuf_bytes_per_partition * RESIDENT_SHARE)
        self.resident: dict[int, tuple[str, int]] = {}
        self.last_use: dict[int, int] = {}
        self.made = {value for group in groups for value in group.makes}
        for number, group in enumerate(groups):
            for value in group.reads:
                self.last_use[value] = number

    def emit(self, number: int, group: _Group) -> None:
        """Appends one group."""
        self.builder.resident_in = tuple(
            self.resident[value][0] for value in group.reads if value in self.resident
        )
        kept = [value for value in group.makes if self._keep(number, value, group.makes[value])]
        self.builder.resident_out = tuple(self.resident[value][0] for value in kept)
        self.builder.add(self._bound(number, group, set(kept)))
        self.builder.resident_in = self.builder.resident_out = ()
        self._release(number)

    def _release(self, number: int) -> None:
        for value in [v for v in self.resident if self.last_use.get(v, -1) <= number]:
            self.room += self.resident.pop(value)[1]

    def emit_run(self, number: int, groups: Sequence[_Group]) -> None:
        """Appends a chain of batched stages as one loop over the items of the batch.

        What one stage makes for the next stays on the chip. The last product comes first in the
        body: it works on the item before, while the other engines are at this one.
        """
        outer = self.builder
        batch = groups[0].stage.batch if isinstance(groups[0].stage, MatmulStage) else 1
        last = number + len(groups) - 1
        made = {v for g in groups for v in g.makes if self.last_use.get(v, -1) <= last}
        inner = TileBuilder(outer.core, 1)
        inner.tiles, inner.layout = outer.tiles, outer.layout
        tiles = {
            value: inner.tile("item", self._item_bytes(groups, value, batch)) for value in made
        }
        bodies = []
        for offset, group in enumerate(groups):
            inner.steps = []
            inner.resident_in = tuple(
                tiles[v] if v in tiles else self.resident[v][0]
                for v in group.reads
                if v in tiles or v in self.resident
            )
            kept = [
                v for v in group.makes if v not in tiles and self._keep(last, v, group.makes[v])
            ]
            made_here = tuple(tiles[v] for v in group.makes if v in tiles)
            inner.resident_out = made_here + tuple(self.resident[v][0] for v in kept)
            bound = self._bound(number + offset, group, {*kept, *made}, made)
            inner.add(_item(bound, batch))
            bodies.append(inner.steps)
        steps = [step for body in reversed(bodies) for step in body]
        outer.steps.append(Loop(tuple(steps), -(-batch // outer.shards)))
        self._release(last)

    @staticmethod
    def _item_bytes(groups: Sequence[_Group], value: int, batch: int) -> int:
        size = next(g.makes[value].num_bytes for g in groups if value in g.makes)
        return -(-size // (batch * PARTITIONS))

    def _keep(self, number: int, value: int, access: Access) -> bool:
        """Gives the value a place in SBUF if a later group reads it and there is room."""
        if self.last_use.get(value, -1) <= number:
            return False
        size = -(-access.num_bytes // (self.builder.shards * PARTITIONS))
        if size > self.room:
            return False
        self.room -= size
        self.resident[value] = (self.builder.tile("value", size, buffers=1), size)
        return True

    def _bound(
        self,
        number: int,
        group: _Group,
        kept: set[int],
        near: frozenset[int] | set[int] = frozenset(),
    ) -> Stage:
        """The stage with only those loads and stores that go to HBM; ``near`` is on the chip."""
        if isinstance(group.stage, MatmulStage):
            epilogue = merged(group.stage.epilogue)
            group.stage = self._laid_out(replace(group.stage, epilogue=epilogue), group)
        loads = {
            v: a
            for v, a in group.reads.items()
            if v not in near and (v not in self.resident or v in kept)
        }
        stores = [
            access
            for value, access in group.makes.items()
            if value in self.outputs
            or (value not in kept and self.last_use.get(value, -1) > number)
        ]
        stage = group.stage
        if isinstance(stage, RowStage):
            stage = replace(stage, passes=merged(stage.passes))
        if isinstance(stage, MatmulStage):
            return self._bound_matmul(stage, loads, stores)
        return replace(stage, loads=tuple(loads.values()), stores=tuple(stores))

    def _bound_matmul(
        self, stage: MatmulStage, loads: dict[int, Access], stores: list[Access]
    ) -> MatmulStage:
        from_hbm = list(loads.values())
        others = tuple(a for a in from_hbm if a not in (stage.lhs, stage.rhs))
        return replace(
            stage,
            lhs=stage.lhs if stage.lhs in from_hbm else None,
            rhs=stage.rhs if stage.rhs in from_hbm else None,
            out=stores[0] if stores else None,
            stores=tuple(stores[1:]),
            loads=others,
        )

    def _laid_out(self, stage: MatmulStage, group: _Group) -> MatmulStage:
        """Operands the way round in which a product reads them.

        What the graph makes itself is made that way. A right operand (a weight) that comes in the
        other way round is laid out anew before the graph starts; a left one, and the items of a
        batch, are turned on the chip.
        """
        if stage.batch > 1:
            return stage
        made = {access for value, access in group.reads.items() if value in self.made}
        turned = stage.rhs_transpose and stage.rhs not in made
        return replace(
            stage,
            rhs=self._input(stage.rhs, turned, group),
            lhs_transpose=stage.lhs_transpose and stage.lhs not in made,
            rhs_transpose=False,
        )

    def _input(self, access: Access | None, turned: bool, group: _Group) -> Access | None:
        """An operand, marked where it is in the compiler's layout: constants are from the start."""
        value = next((v for v, a in group.reads.items() if a == access), None)
        constant = value is not None and value not in self.inputs and value not in self.made
        if access is None or value is None or not (turned or constant):
            return access
        if not constant:
            self.laid_out[value] = access.num_bytes
        marked = replace(access, laid_out=True)
        group.reads[value] = marked
        return marked

    def program(self, name: str, notes: tuple[str, ...]) -> Program:
        """What was appended, after the pass that lays out inputs."""
        self.builder.lay_out(sum(self.laid_out.values()))
        return self.builder.program(name, notes)
