"""The cost model: what an op, a compiled graph, a copy or a collective takes on a NeuronCore.

Everything is simulated from public figures; nothing is measured. Equal questions get equal answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from trnscope.hardware.neuroncore import Instance, load_instance
from trnscope.sim.cost.collectives import CollectiveModel
from trnscope.sim.cost.graph import LoweredGraph, lower_graph
from trnscope.sim.cost.host import Runtime, load_runtime
from trnscope.sim.cost.lowering import registry
from trnscope.sim.cost.lowering.collective import UNKNOWN_RANKS
from trnscope.sim.cost.lowering.work import Lowered, MatmulStage, laid_out, size_bytes
from trnscope.sim.cost.program import DmaTransfer, Instruction, Program, leaves
from trnscope.sim.cost.schedule import Schedule, Scheduler
from trnscope.sim.cost.tiling import TileBuilder
from trnscope.sim.signature import CollectiveSpec, ExecutionCost, GraphSpec, OpSignature

VERSION = "3"
"""Raised with every change that moves a time."""


class CostModel:
    """Times on one instance type; use :meth:`for_instance`."""

    def __init__(self, instance: Instance, *, throttle: bool = False) -> None:
        self.instance = instance
        self.core = instance.core
        self.runtime: Runtime = load_runtime()
        self.collectives = CollectiveModel(instance)
        self.scheduler = Scheduler(self.core, throttle=throttle)
        self.name = f"{instance.name}, LNC={instance.lnc}"
        self.version = f"{VERSION}.{self.core.version}.{self.runtime.version}"

    @classmethod
    def for_instance(
        cls, name: str, lnc: int | None = None, *, throttle: bool = False
    ) -> CostModel:
        """For an instance type (or a chip: its smallest instance); unknown ones raise."""
        return cls(load_instance(name, lnc), throttle=throttle)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of its times should know: laws that were measured on another chip."""
        return tuple(str(one) for one in self.collectives.borrowed)

    @property
    def num_logical_cores(self) -> int:
        """Devices that torch enumerates on the instance."""
        return self.instance.num_logical_cores

    @property
    def hbm_bytes_per_core(self) -> int:
        """HBM of one logical core."""
        core = self.core
        return core.hbm_bytes_per_chip * self.instance.lnc // core.cores_per_chip

    def op(self, op: OpSignature) -> ExecutionCost:
        """An eager op: one NEFF that reads its inputs from HBM and writes its outputs there."""
        lowered = registry.lower(op)
        if lowered.collective is not None:
            return self.collective(self._ranked(lowered.collective))
        if not lowered.stages:
            return ExecutionCost(host_ns=0, device_ns=0)
        if lowered.on_cpu:
            return self._on_cpu(op)
        program = self._program(op.name, lowered)
        return self._cost(
            program,
            self.runtime.eager_dispatch_ns,
            self.runtime.compile_eager_ns,
        )

    def graph(self, graph: GraphSpec) -> ExecutionCost:
        """A compiled graph: one NEFF."""
        lowered = self._lowered(graph)
        runtime = self.runtime
        compile_ns = runtime.compile_base_ns + runtime.compile_per_node_ns * len(graph.nodes)
        host_ns = runtime.graph_launch_ns + runtime.graph_input_ns * len(graph.inputs)
        cost = self._cost(lowered.program, host_ns, compile_ns)
        return self._with_collectives(self._with_fallbacks(cost, lowered.on_cpu), lowered)

    def copy(self, kind: str, num_bytes: int) -> ExecutionCost:
        """A copy: ``h2d``, ``d2h`` or ``d2d``."""
        runtime = self.runtime
        if kind == "d2d":
            rate = self.core.dma_bytes_per_ns * self.instance.lnc / 2
            device = runtime.neff_fixed_ns + round(num_bytes / rate)
            return ExecutionCost(
                runtime.graph_launch_ns,
                device,
                hbm_read_bytes=num_bytes,
                hbm_write_bytes=num_bytes,
                engine_ns={"dma": device - runtime.neff_fixed_ns},
            )
        small, large = {
            "h2d": (runtime.h2d_bytes_per_ns, runtime.h2d_large_bytes_per_ns),
            "d2h": (runtime.d2h_bytes_per_ns, runtime.d2h_large_bytes_per_ns),
        }[kind]
        staged = min(num_bytes, runtime.staging_bytes)
        device = runtime.copy_fixed_ns + round(staged / small + (num_bytes - staged) / large)
        reads, writes = (0, num_bytes) if kind == "h2d" else (num_bytes, 0)
        return ExecutionCost(
            runtime.graph_launch_ns,
            device,
            hbm_read_bytes=reads,
            hbm_write_bytes=writes,
            engine_ns={"dma": device},
        )

    def collective(self, spec: CollectiveSpec) -> ExecutionCost:
        """A collective as an execution of its own: barrier, then the transfer."""
        barrier = self.collectives.barrier_ns(spec.num_ranks)
        wire = self.collectives.in_graph_ns(spec)
        return ExecutionCost(
            self.runtime.graph_launch_ns,
            round(barrier + wire),
            hbm_read_bytes=spec.num_bytes,
            hbm_write_bytes=spec.num_bytes,
            engine_ns={"dma": round(wire)},
        )

    def lower(self, what: OpSignature | GraphSpec) -> Program:
        """The instructions and transfers of one physical core."""
        if isinstance(what, OpSignature):
            return self._program(what.name, registry.lower(what))
        return self._lowered(what).program

    def schedule(self, program: Program, max_executions: int = 4096) -> Schedule:
        """When each instruction runs; the first ``max_executions`` are listed."""
        return self.scheduler.run(program, max_executions)

    def _lowered(self, graph: GraphSpec) -> LoweredGraph:
        return lower_graph(graph, self.core, self.instance.lnc)

    def _ranked(self, spec: CollectiveSpec) -> CollectiveSpec:
        """With all cores of the instance where the op names no size of its group."""
        known = spec.num_ranks != UNKNOWN_RANKS
        return spec if known else replace(spec, num_ranks=self.num_logical_cores)

    def _with_fallbacks(self, cost: ExecutionCost, ops: Sequence[OpSignature]) -> ExecutionCost:
        """Each op that the host computes costs what it does op by op, its copies included."""
        apart = [self._on_cpu(op) for op in ops]
        return replace(
            cost,
            host_ns=cost.host_ns + sum(one.host_ns for one in apart),
            on_cpu=bool(apart),
            hbm_read_bytes=cost.hbm_read_bytes + sum(one.hbm_read_bytes for one in apart),
            hbm_write_bytes=cost.hbm_write_bytes + sum(one.hbm_write_bytes for one in apart),
        )

    def _with_collectives(self, cost: ExecutionCost, lowered: LoweredGraph) -> ExecutionCost:
        if not lowered.collectives:
            return cost
        specs = [self._ranked(spec) for spec in lowered.collectives]
        wire = round(sum(self.collectives.in_graph_ns(spec) for spec in specs))
        moved = sum(spec.num_bytes for spec in specs)
        return replace(
            cost,
            device_ns=cost.device_ns + round(self.collectives.of_a_graph_ns(specs)),
            hbm_read_bytes=cost.hbm_read_bytes + moved,
            hbm_write_bytes=cost.hbm_write_bytes + moved,
            engine_ns={**cost.engine_ns, "dma": cost.engine_ns.get("dma", 0) + wire},
        )

    def _program(self, name: str, lowered: Lowered) -> Program:
        builder = TileBuilder(self.core, self.instance.lnc)
        turned = 0
        for stage in lowered.stages:
            if isinstance(stage, MatmulStage) and stage.batch == 1 and stage.rhs_transpose:
                turned += 0 if stage.rhs is None else stage.rhs.num_bytes
                stage = laid_out(stage)
            builder.add(stage)
        builder.lay_out(turned)
        return builder.program(name, lowered.notes)

    def _cost(self, program: Program, host_ns: int, compile_ns: int) -> ExecutionCost:
        schedule = self.scheduler.run(program)
        flops = read_bytes = write_bytes = 0
        for step, times in leaves(program.steps):
            if isinstance(step, DmaTransfer):
                moved = step.num_bytes * times * program.num_cores
                read_bytes += moved if step.direction in ("load", "move") else 0
                write_bytes += moved if step.direction in ("store", "move") else 0
            elif isinstance(step, Instruction):
                flops += step.flops * (times // step.repeat) * program.num_cores
        return ExecutionCost(
            host_ns,
            self.runtime.neff_fixed_ns + schedule.total_ns,
            compile_ns,
            flops=flops,
            hbm_read_bytes=read_bytes,
            hbm_write_bytes=write_bytes,
            engine_ns=schedule.engine_ns,
        )

    def _on_cpu(self, op: OpSignature) -> ExecutionCost:
        """Inputs to the host, the op there, outputs back; nothing runs on the core."""
        runtime = self.runtime
        read_bytes = sum(size_bytes(spec) for spec in op.inputs if spec is not None)
        write_bytes = sum(size_bytes(spec) for spec in op.outputs)
        moved = self.copy("d2h", read_bytes).device_ns + self.copy("h2d", write_bytes).device_ns
        compute = (read_bytes + write_bytes) / runtime.fallback_bytes_per_ns
        host = runtime.fallback_dispatch_ns + 2 * runtime.sync_ns + moved + round(compute)
        return ExecutionCost(
            host, 0, on_cpu=True, hbm_read_bytes=read_bytes, hbm_write_bytes=write_bytes
        )
