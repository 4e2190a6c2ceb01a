"""The answer: a step on one core as recorded, and in the layout that was asked for.

Pure arithmetic on what was recorded; every time is simulated.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

from trnscope.estimate.communication import (
    Communication,
    LayoutTime,
    Phases,
    communication,
    layout_time,
    sharded_optimizer_ns,
)
from trnscope.estimate.layout import Layout
from trnscope.estimate.memory import Peak, peak
from trnscope.estimate.options import EstimateOptions
from trnscope.estimate.parts import COLLECTIVE, HOST, take_off
from trnscope.estimate.recorded import Recorded, TensorCollective, Unit
from trnscope.model.units import format_bytes
from trnscope.sim.cost import CostModel
from trnscope.sim.cost.collectives import TITLES

COMFORTABLE = 0.9
"""Share of the capacity that a remedy may fill: programs and fragments need some too."""
MEMORY_CAPACITY = "memory capacity"
"""The binding resource where the step does not fit."""
_LAWS = (TITLES["in_graph"], TITLES["barrier"])
"""What the collectives of an estimate rest on: eager ones, within an instance."""


@dataclass(frozen=True)
class Utilisation:
    """Matrix FLOPs of the recorded steps, all together."""

    matrix_flops: int
    mfu: float | None
    """Over the peak times ``of_ns``."""
    of_ns: int
    peaks: tuple[tuple[str, float], ...] = ()
    """FLOP/s of one logical core, by type."""
    is_least: bool = False
    """Whether work without a formula was left out."""

    def over(self, time_ns: int, num_steps: int) -> float | None:
        """MFU of a step that takes so long."""
        if self.mfu is None or time_ns == 0:
            return None
        return self.mfu * self.of_ns / num_steps / time_ns


@dataclass(frozen=True)
class Placed:
    """The step in a layout, on each of its cores."""

    layout: Layout
    time: LayoutTime
    sent: Communication
    parts_ns: dict[str, int]
    """They add up to ``time.step_ns``."""
    memory: Peak
    capacity_bytes: int
    mfu: float | None
    samples_per_s: float | None
    tokens_per_s: float | None
    """Of all cores together."""

    @property
    def peak_bytes(self) -> int:
        """HBM of a core at the peak."""
        return self.memory.total

    @property
    def missing_bytes(self) -> int:
        """What is beyond the capacity; 0 where it fits."""
        return max(0, self.peak_bytes - self.capacity_bytes)

    @property
    def binding(self) -> str:
        """The part that takes most of the step; the memory's capacity where it does not fit."""
        if self.missing_bytes:
            return MEMORY_CAPACITY
        return max(self.parts_ns, key=lambda part: self.parts_ns[part])

    def to_json(self) -> dict[str, object]:
        """``one_core`` or ``layout`` in docs/reference/json.md."""
        return {
            "dp": self.layout.dp,
            "fsdp": self.layout.fsdp,
            "tp": self.layout.tp,
            "num_cores": self.layout.num_cores,
            "step_ns": self.time.step_ns,
            "step_without_overlap_ns": self.time.serial_ns,
            "parts_ns": self.parts_ns,
            "collectives": [one.to_json(n) for one, n in Counter(self.sent.all).items()],
            "collectives_ns": self.sent.time_ns,
            "collectives_exposed_ns": self.time.exposed_ns,
            "memory": self.memory.to_json(),
            "peak_bytes": self.peak_bytes,
            "capacity_bytes": self.capacity_bytes,
            "missing_bytes": self.missing_bytes,
            "mfu": self.mfu,
            "samples_per_s": self.samples_per_s,
            "tokens_per_s": self.tokens_per_s,
            "binding": self.binding,
        }


@dataclass(frozen=True)
class Remedy:
    """A change with which the step fits, by the same model."""

    change: str
    peak_bytes: int | None
    """What it leads to; None where the model cannot say."""

    def to_json(self) -> dict[str, object]:
        """Its fields."""
        return {"change": self.change, "peak_bytes": self.peak_bytes}


@dataclass(frozen=True)
class Estimate:
    """What ``trnscope estimate`` says."""

    script: str
    recorded: Recorded
    used: Utilisation
    one_core: Placed
    placed: Placed
    """In the layout that was asked for; ``one_core`` where that was one core."""
    remedies: tuple[Remedy, ...]
    """Empty where it fits."""
    samples: int | None
    tokens: int | None
    """Per step and core, or group of cores that share a batch."""
    borrowed: tuple[str, ...] = ()
    """Laws of its collectives that were measured on another chip."""

    def to_json(self) -> dict[str, object]:
        """See docs/reference/json.md."""
        recorded = self.recorded
        return {
            "schema": 1,
            "simulated": True,
            "hardware_model": recorded.hardware_model,
            "script": self.script,
            "instance": recorded.instance,
            "lnc": recorded.lnc,
            "num_steps": recorded.num_steps,
            "first_step": recorded.first_step,
            "steps_by": recorded.steps_by,
            "executions_per_step": recorded.num_executions / recorded.num_steps,
            "on_cpu_per_step": recorded.num_on_cpu / recorded.num_steps,
            "num_programs": recorded.num_programs,
            "compile_ns": recorded.compile_ns,
            "matrix_flops_per_step": self.used.matrix_flops / recorded.num_steps,
            "peak_flops_per_s": dict(self.used.peaks),
            "mfu_is_lower_bound": self.used.is_least,
            "samples_per_step": self.samples,
            "tokens_per_step": self.tokens,
            "one_core": self.one_core.to_json(),
            "layout": self.placed.to_json(),
            "borrowed_laws": list(self.borrowed) if self.placed.sent.all else [],
            "fits": self.placed.missing_bytes == 0,
            "remedies": [one.to_json() for one in self.remedies],
            "assumptions": list(assumptions(self)),
            "trace": recorded.trace,
        }


def estimate_of(
    recorded: Recorded, options: EstimateOptions, model: CostModel, used: Utilisation
) -> Estimate:
    """Work out the answer from what was recorded."""
    batch = recorded.batch
    samples = options.samples or (None if batch is None else batch.samples)
    tokens = options.tokens or (None if batch is None else batch.tokens)

    def place(layout: Layout) -> Placed:
        return _place(recorded, layout, model, used, samples, tokens)

    placed = place(options.layout)
    return Estimate(
        options.script,
        recorded,
        used,
        place(options.layout.one_group),
        placed,
        _remedies(recorded, placed, model),
        samples,
        tokens,
        tuple(str(one) for one in model.collectives.borrowed if one.law in _LAWS),
    )


def _place(
    recorded: Recorded,
    layout: Layout,
    model: CostModel,
    used: Utilisation,
    samples: int | None,
    tokens: int | None,
) -> Placed:
    steps = recorded.num_steps
    phases = phases_of(recorded)
    num_calls = 1 if recorded.batch is None else max(1, recorded.batch.num_calls)
    sent = communication(
        recorded.units, layout, model, num_calls, _within(recorded.tensor_collectives, steps)
    )
    optimizer_ns = sharded_optimizer_ns(phases.optimizer_ns, recorded.optimizer_work, layout.fsdp)
    time = layout_time(phases, sent, optimizer_ns)

    def rate(count: int | None) -> float | None:
        return None if count is None else count * layout.num_batches / time.step_ns * 1e9

    return Placed(
        layout,
        time,
        sent,
        _parts(recorded, phases.optimizer_ns - optimizer_ns, time),
        _peak(recorded, layout.fsdp),
        recorded.capacity_bytes,
        used.over(time.step_ns, steps),
        rate(samples),
        rate(tokens),
    )


def _within(sent: tuple[TensorCollective, ...], steps: int) -> tuple[TensorCollective, ...]:
    """Of one step."""
    return tuple(replace(one, count=round(one.count / steps)) for one in sent)


def phases_of(recorded: Recorded) -> Phases:
    """Means over the steps; what rounding leaves is the forward's."""
    steps = recorded.num_steps
    backward_ns, optimizer_ns = recorded.backward_ns // steps, recorded.optimizer_ns // steps
    total_ns = recorded.duration_ns // steps
    return Phases(total_ns - backward_ns - optimizer_ns, backward_ns, optimizer_ns)


def _parts(recorded: Recorded, saved_ns: int, time: LayoutTime) -> dict[str, int]:
    """A step's parts, less what sharding saves the optimizer, and with the collectives."""
    steps = recorded.num_steps
    parts = {part: ns // steps for part, ns in recorded.parts_ns.items()}
    parts[HOST] += recorded.duration_ns // steps - sum(parts.values())
    parts = take_off(parts, recorded.optimizer_parts_ns, saved_ns)
    if time.exposed_ns:
        parts[COLLECTIVE] = parts.get(COLLECTIVE, 0) + time.exposed_ns
    return parts


def _peak(recorded: Recorded, num_shards: int) -> Peak:
    gathered = gathered_bytes(recorded.units) if num_shards > 1 else 0
    return peak(recorded.memory, num_shards, gathered)


def gathered_bytes(units: tuple[Unit, ...]) -> int:
    """Two units' parameters (one in use, the next one coming) and one unit's gradients."""
    largest = sorted((unit.parameter_bytes for unit in units), reverse=True)[:2]
    return sum(largest) + max((unit.gradient_bytes for unit in units), default=0)


def _remedies(recorded: Recorded, placed: Placed, model: CostModel) -> tuple[Remedy, ...]:
    if not placed.missing_bytes:
        return ()
    found: list[Remedy] = []
    shards = placed.layout.fsdp * 2
    while shards * placed.layout.dp * placed.layout.tp <= model.num_logical_cores:
        total = _peak(recorded, shards).total
        if total <= COMFORTABLE * placed.capacity_bytes:
            found.append(Remedy(f"--fsdp {shards}: split over {shards} cores", total))
            break
        shards *= 2
    kept = max((point.kept for point in recorded.memory), default=0)
    if kept > placed.capacity_bytes // 2:
        found.append(
            Remedy(
                f"up to {format_bytes(kept)} stay on each core however the model is split: "
                "recompute activations in the backward pass (torch.utils.checkpoint), or take a "
                "smaller batch or sequence",
                None,
            )
        )
    return tuple(found)


def assumptions(estimate: Estimate) -> tuple[str, ...]:
    """What the figures rest on, in sentences."""
    recorded, layout = estimate.recorded, estimate.placed.layout
    found = [
        "no values were computed: every one is zero, and a branch on a value went that way",
        "a step goes from a quiet device to a quiet device; Python, data loading and work on "
        "CPU tensors take no time; programs are compiled beforehand",
        "the allocator keeps nothing back and loses nothing to fragments; programs' own memory "
        "is not counted",
    ]
    if estimate.samples is not None and recorded.batch is not None:
        shape = " x ".join(map(str, recorded.batch.shape))
        found.append(
            f"the batch is read off the first argument of {recorded.batch.model}: {shape}"
            + (
                ""
                if recorded.batch.num_calls == 1
                else f", {recorded.batch.num_calls} calls a step"
            )
        )
    if layout.tp > 1:
        found.append(
            f"tensor parallel: {layout.tp} cores share the heads, the inner widths and the "
            "vocabulary, and sum (the logits: gather) their parts before they go on; norms and "
            "residuals are done by each"
        )
    if layout.num_batches > 1:
        found.append(
            "each core runs the recorded step on a batch of its own; cores do not slow one "
            "another down but for HBM that they share evenly"
        )
        found.append(
            "collectives run beside the work of their phase as well as they can, apart from "
            "the first gather of a phase and the last reduction"
        )
    if layout.fsdp > 1:
        found.append(
            "sharded by layers (members of a ModuleList): each is gathered before its forward "
            "and again before its backward pass, and its gradients are reduced and scattered"
        )
    if layout.dp > 1 and layout.fsdp == 1:
        found.append("gradients are averaged in buckets of 25 MiB, torch's default")
    if estimate.placed.sent.all:
        found += estimate.borrowed
    return tuple(found)
