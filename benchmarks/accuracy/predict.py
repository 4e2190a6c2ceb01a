"""What the model says for a workload: one :class:`Prediction`, from which any metric follows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache

from benchmarks.accuracy import op_lists
from benchmarks.accuracy.problems import InputProblem, said
from benchmarks.accuracy.workloads import Workload
from trnscope.errors import TrnscopeError
from trnscope.sim.cost import CostModel
from trnscope.sim.cost.program import DmaTransfer, Instruction, Program, leaves
from trnscope.sim.signature import CollectiveSpec, OpSignature


@dataclass(frozen=True)
class Prediction:
    """A simulated execution."""

    time_ns: float
    device_ns: float
    engine_ns: dict[str, int] = field(default_factory=dict)
    read_bytes: float = 0.0
    write_bytes: float = 0.0
    flops: float = 0.0
    opcodes: dict[str, int] = field(default_factory=dict)


@cache
def model_for(instance: str, lnc: int | None) -> CostModel:
    """One model an instance type."""
    return CostModel.for_instance(instance, lnc)


def predict(workload: Workload) -> Prediction:
    """By the workload's mode; raises :class:`InputProblem` where its description is at fault."""
    if workload.mode not in MODES:
        known = ", ".join(sorted(MODES))
        raise InputProblem(f"{workload.name!r}: no mode {workload.mode!r}; there are {known}")
    try:
        return _predict(workload)
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise InputProblem(f"{workload.name!r}: {said(error)}") from error
    except TrnscopeError as error:
        raise InputProblem(f"{workload.name!r}: {said(error)}") from error


def _predict(workload: Workload) -> Prediction:
    """With the fixed parts that it names added."""
    model = model_for(workload.instance, workload.lnc)
    found = MODES[workload.mode](workload, model)
    added = sum(_fixed(model, name) for name in workload.raw.get("adds", []))
    repeats = workload.number("repeat", 1.0) / workload.number("divide", 1.0)
    return Prediction(
        found.time_ns * repeats + added,
        found.device_ns * repeats,
        found.engine_ns,
        found.read_bytes,
        found.write_bytes,
        workload.number("flops", found.flops),
        found.opcodes,
    )


def _fixed(model: CostModel, name: str) -> float:
    """A constant of the runtime, by its name in the model."""
    if name not in vars(model.runtime) or not name.endswith("_ns"):
        raise InputProblem(f"adds: the runtime has no constant {name!r}")
    return float(getattr(model.runtime, name))


def _program(workload: Workload, model: CostModel) -> Prediction:
    program = workload.program()
    schedule = model.scheduler.run(program)
    reads, writes, flops, opcodes = _counts(program)
    total = float(schedule.total_ns)
    return Prediction(total, total, schedule.engine_ns, reads, writes, flops, opcodes)


def _counts(program: Program) -> tuple[float, float, float, dict[str, int]]:
    reads = writes = flops = 0.0
    opcodes: dict[str, int] = {}
    for step, times in leaves(program.steps):
        if isinstance(step, DmaTransfer):
            reads += step.num_bytes * times if step.direction != "store" and step.hbm else 0
            writes += step.num_bytes * times if step.direction != "load" and step.hbm else 0
        elif isinstance(step, Instruction):
            opcodes[step.opcode] = opcodes.get(step.opcode, 0) + times
            flops += step.flops * times
    return reads, writes, flops, opcodes


def _eager(workload: Workload, model: CostModel) -> Prediction:
    """Ops one after another: host and device in program order, then one wait."""
    costs: dict[OpSignature, tuple[int, int]] = {}
    launches: list[tuple[int, int]] = []
    engine: dict[str, int] = {}
    for section in (*workload.sections(), *workload.sections("after")):
        part = []
        for op in op_lists.signatures(section.ops):
            if op not in costs:
                cost = model.op(op)
                costs[op] = (cost.host_ns, cost.device_ns)
            if costs[op][0]:
                part.append(costs[op])
        launches += part * section.repeat
    num_reduces = round(workload.number("all_reduces"))
    total, device = timeline(launches, model)
    total += num_reduces * eager_all_reduce_ns(workload, model)
    return Prediction(total + model.runtime.sync_ns, device, engine)


def eager_all_reduce_ns(workload: Workload, model: CostModel) -> float:
    """An all-reduce as an eager execution of its own."""
    spec = CollectiveSpec(
        "all_reduce", round(workload.number("all_reduce_bytes")), round(workload.number("ranks", 1))
    )
    cost = model.collective(spec)
    return max(model.runtime.eager_dispatch_ns, cost.device_ns)


def timeline(launches: list[tuple[int, int]], model: CostModel) -> tuple[float, float]:
    """End of the last execution, and the device's busy time.

    The host runs ahead of the device by at most the eager queue's depth.
    """
    depth = model.runtime.eager_queue_depth
    host = device_free = busy = 0.0
    ends: list[float] = []
    for host_ns, device_ns in launches:
        if len(ends) >= depth:
            host = max(host, ends[-depth])
        host += host_ns
        start = max(host + model.runtime.launch_latency_ns, device_free)
        device_free = start + device_ns
        busy += device_ns
        ends.append(device_free)
    return device_free, busy


def _compiled(workload: Workload, model: CostModel) -> Prediction:
    graph = op_lists.graph(workload.name, workload.sections())
    cost = model.graph(graph)
    runtime = model.runtime
    num_inputs = workload.number("num_inputs", len(graph.inputs))
    host = runtime.graph_launch_ns + runtime.graph_input_ns * num_inputs
    device = cost.device_ns + _collectives(workload, model)
    for section in workload.sections("after"):
        for op in op_lists.signatures(section.ops):
            device += max(runtime.eager_dispatch_ns, model.op(op).device_ns)
    if workload.raw.get("chained"):
        time = max(host, device + runtime.replay_gap_ns)
    else:
        time = host + device + runtime.sync_ns
    reads, writes = cost.hbm_read_bytes, cost.hbm_write_bytes
    return Prediction(time, device, cost.engine_ns, reads, writes, cost.flops)


def _traced(workload: Workload, model: CostModel) -> Prediction:
    """A model that was compiled ahead (``torch_neuronx.trace``) and is called through the runtime:
    no dispatch of torch.compile, only what the host's clock shows beside the device's."""
    cost = model.graph(op_lists.graph(workload.name, workload.sections()))
    device = cost.device_ns + _collectives(workload, model)
    time = device + model.runtime.launch_latency_ns
    reads, writes = cost.hbm_read_bytes, cost.hbm_write_bytes
    return Prediction(time, device, cost.engine_ns, reads, writes, cost.flops)


def _collectives(workload: Workload, model: CostModel) -> float:
    """All-reduces of a compiled model: their own time, what each adds, and one barrier."""
    ranks = round(workload.number("ranks", 1))
    if ranks <= 1:
        return 0.0
    spec = CollectiveSpec("all_reduce", round(workload.number("all_reduce_bytes")), ranks)
    return model.collectives.of_a_graph_ns([spec] * round(workload.number("all_reduces")))


def _op(workload: Workload, model: CostModel) -> Prediction:
    """The device time of single executions, launches not counted."""
    total = reads = writes = flops = 0.0
    engine: dict[str, int] = {}
    for section in workload.sections():
        for op in op_lists.signatures(section.ops):
            cost = model.op(op)
            total += cost.device_ns * section.repeat
            reads += cost.hbm_read_bytes * section.repeat
            writes += cost.hbm_write_bytes * section.repeat
            flops += cost.flops * section.repeat
            for name, busy in cost.engine_ns.items():
                engine[name] = engine.get(name, 0) + busy * section.repeat
    return Prediction(total, total, engine, reads, writes, flops)


def _device(workload: Workload, model: CostModel) -> Prediction:
    """A graph's time on the device, launch and fixed cost not counted: a kernel."""
    graph = op_lists.graph(workload.name, workload.sections())
    cost = model.graph(graph)
    time = float(cost.device_ns - model.runtime.neff_fixed_ns)
    reads, writes = cost.hbm_read_bytes, cost.hbm_write_bytes
    return Prediction(time, time, cost.engine_ns, reads, writes, cost.flops)


def _collective(workload: Workload, model: CostModel) -> Prediction:
    spec = CollectiveSpec(
        str(workload.raw.get("kind", "all_reduce")),  # type: ignore[arg-type]
        round(workload.number("bytes")),
        round(workload.number("ranks")),
    )
    count = workload.number("count", 1.0)
    regime = str(workload.raw.get("regime", "in_graph"))
    time = model.collectives.time_ns(spec, regime) * count
    if workload.raw.get("barrier"):
        hardware = workload.raw["barrier"] == "hardware"
        time += model.collectives.barrier_ns(spec.num_ranks, hardware=hardware)
    return Prediction(time, time)


def _copy(workload: Workload, model: CostModel) -> Prediction:
    size = round(workload.number("bytes"))
    cost = model.copy(str(workload.raw["kind"]), size)
    time = float(cost.device_ns)
    return Prediction(time, time, cost.engine_ns, size if workload.raw["kind"] == "h2d" else 0)


def _transfer(workload: Workload, model: CostModel) -> Prediction:
    """The data alone, from the first byte to the last."""
    size = round(workload.number("bytes"))
    transfer = DmaTransfer(
        "transfer",
        "load",
        size,
        round(workload.number("run", size)),
        ring=bool(workload.raw.get("ring", False)),
        engines=round(workload.number("engines", 16)),
    )
    time = model.scheduler.dma_model.time(transfer)
    return Prediction(time.data_ns, time.data_ns, {}, size)


def _runtime(workload: Workload, model: CostModel) -> Prediction:
    """Constants alone: what the workload adds."""
    del workload, model
    return Prediction(0.0, 0.0)


MODES: dict[str, Callable[[Workload, CostModel], Prediction]] = {
    "program": _program,
    "eager": _eager,
    "compiled": _compiled,
    "traced": _traced,
    "op": _op,
    "device": _device,
    "collective": _collective,
    "copy": _copy,
    "transfer": _transfer,
    "runtime": _runtime,
}
