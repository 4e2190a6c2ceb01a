"""The three traces of each rule about NeuronCores, ranks, memory, the device and recordings."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from tests.unit.made_trace import MadeTrace
from tests.unit.neuron_profiles import Rows, read, write_tables
from tests.unit.rule_case import CPU_ONLY, Case, RuleCases, host, nothing, steps
from trnscope.model.kinds import DeviceKind, SliceKind
from trnscope.opened import OpenedProfile

BACKWARD = "autograd::engine::evaluate_function: AddmmBackward0"
GPU = "NVIDIA H100 80GB HBM3"
Write = Callable[[MadeTrace], None]
KERNELS_ONLY = steps(lambda made: made.op("aten::mm", 5, lambda: made.launch(1000)))
"""A step of a GPU without communication."""


# NeuronCores


def neuron(write: Write, number: int = 4) -> Case:
    """Steps on a NeuronCore."""

    def make(folder: Path) -> OpenedProfile:
        made = MadeTrace(folder, "Trainium2", DeviceKind.NEURON)
        return made.steps(number, lambda: write(made)).open()

    return make


def program(made: MadeTrace, op: str, us: int, host_us: int = 160) -> None:
    """One op, launched as a program of its own."""
    made.op(op, 5, lambda: made.launch(us, "NEFF", host_us=host_us, call="nrta_execute_schedule"))


def falling_back(times: int) -> Case:
    """A step of 3 ms on the device, with an op that copies there and back."""

    def inside(made: MadeTrace) -> None:
        made.call("nrt_tensor_read_wait", 300)
        made.call("nrt_tensor_write", 200)

    def write(made: MadeTrace) -> None:
        for _ in range(times):
            made.op("aten::linalg_inv", 5, lambda: inside(made))
        program(made, "aten::mm", 500, 1000)

    return neuron(write)


def one_by_one(us: int) -> Case:
    """Ten ops whose programs take so long; launching takes 160 each."""

    def write(made: MadeTrace) -> None:
        for _ in range(10):
            program(made, "aten::add", us)

    return neuron(write)


def compiling(
    steps_of: tuple[int, ...], number: int = 4, ops: tuple[str, ...] = ("aten::mm",)
) -> Case:
    """The compiler runs in these steps, for the same op or for several by turns."""

    def make(folder: Path) -> OpenedProfile:
        made = MadeTrace(folder, "Trainium2", DeviceKind.NEURON)
        for at in range(number):

            def body(at: int = at) -> None:
                if at in steps_of:
                    made.op(ops[at % len(ops)], 5, lambda: made.call("neuronx-cc", 1000))
                program(made, "aten::add", 1000)
                made.wait("nrt_wait")

            made.step(body)
        return made.open()

    return make


def switching(each_us: int) -> Case:
    """Two programs take turns; before each the core needs so long to change."""

    def make(folder: Path) -> OpenedProfile:
        made = MadeTrace(folder, "Trainium2", DeviceKind.NEURON)

        def body() -> None:
            for _ in range(2):
                program(made, "CompiledFunction", 1000, 20)
            made.wait("nrt_wait")

        made.steps(4, body)
        events = made.builder.stream(0, 99, DeviceKind.NEURON)
        for at in range(8):
            start, dur = at * 1000_000, each_us * 1000
            made.builder.slice(events, "nc_model_switch", start, dur, SliceKind.DEVICE_ANNOTATION)
        return made.open()

    return make


def tables(**more: Rows) -> Case:
    """A device profile alone, of 10 µs."""

    def make(folder: Path) -> OpenedProfile:
        path = write_tables(
            folder / "profile", {**more, "Metadata": [{"instance_type": "trn2.3xlarge"}]}
        )
        return OpenedProfile((read(path, folder),))

    return make


def instructions(engine: str, ns: int, opcode: str = "OP") -> list[dict[str, object]]:
    """One instruction from 0 on, and a short one of the Tensor engine at the end of 10 µs."""
    return [
        {"start_ts": 0, "end_ts": ns, "engine": engine, "opcode": opcode, "id": 1, "pcore_idx": 0},
        {"start_ts": 9_900, "end_ts": 10_000, "engine": "tensor", "opcode": "MATMUL", "id": 2,
         "pcore_idx": 0},
    ]  # fmt: skip


def transfers(num_bytes: int, ns: int) -> list[dict[str, object]]:
    """One transfer that ends when the last instruction begins."""
    return [
        {"start_ts": 9_900 - ns, "end_ts": 9_900, "id": 3, "queue_name": "q", "pcore_idx": 0,
         "transfer_bytes": num_bytes, "variable": "input"},
    ]  # fmt: skip


def moving(num_bytes: int, ns: int, **more: Rows) -> Case:
    """A tenth of the time computes, then data come for so long."""
    return tables(
        Instruction=instructions("vector", 1_000),
        DmaPacketAggregated=transfers(num_bytes, ns),
        **more,
    )


def spilling(reloaded: int) -> Case:
    """Of 1000 bytes that are read from HBM so many are reloads of spilled values."""
    figures = {
        "spill_save_bytes": reloaded,
        "spill_reload_bytes": reloaded,
        "hbm_read_bytes": 1000,
        "hbm_write_bytes": 1000,
        "mfu_estimated_percent": 0.1,
    }
    return moving(1 << 20, 5_000, Summary=[figures])


def throttling(ns: int) -> Case:
    return moving(
        1 << 20, 1_000, Throttle=[{"timestamp": 100, "duration": ns, "type": "pi", "k": 1, "n": 2}]
    )


def waiting(gap_us: int) -> Case:
    """One graph of 500 µs a step, and the host's own time before it."""

    def write(made: MadeTrace) -> None:
        made.op("CompiledFunction", gap_us, lambda: made.launch(500, "model", host_us=20))

    return neuron(write)


# Communication


def barrier(every: int) -> Case:
    """A barrier in each n-th of eight steps, for which the host waits."""

    def make(folder: Path) -> OpenedProfile:
        made = MadeTrace(folder)
        for number in range(8):

            def body(number: int = number) -> None:
                made.op("aten::mm", 500)
                made.launch(400)
                if number % every == 0:
                    made.op("c10d::barrier", 10, made.wait)

            made.step(body)
        return made.open()

    return make


GRADIENTS = 1 << 20
"""Numbers in one bucket."""


def reduce(made: MadeTrace, us: int, **attributes: str | int) -> None:
    made.op(
        "c10d::allreduce_", 10,
        lambda: made.launch(us, "ncclDevKernel_AllReduce_Sum_f32_RING_LL",
                            kind=SliceKind.COLLECTIVE, stream=20, **attributes),
    )  # fmt: skip


def after_backward(late: bool, in_nelems: int = GRADIENTS) -> Case:
    """Backward and an all-reduce of 1 ms each, one after the other or side by side."""

    def write(made: MadeTrace) -> None:
        made.op("aten::mm", 5, lambda: made.launch(1000))
        made.wait()
        if not late:
            made.op(BACKWARD, 5, lambda: reduce(made, 1000, in_nelems=in_nelems))
        made.op(BACKWARD, 5, lambda: made.launch(1000))
        if late:
            made.wait()
            reduce(made, 1000, in_nelems=in_nelems)
        made.wait()

    return steps(write)


def micro_batches(reduced: tuple[bool, ...]) -> Case:
    """Passes through DDP, with and without a reduction, for one optimizer step."""

    def write(made: MadeTrace) -> None:
        for each in reduced:
            made.range("DistributedDataParallel.forward", 5, lambda: made.launch(500))
            made.op(BACKWARD, 5, lambda: made.launch(500))
            made.wait()
            if each:
                reduce(made, 300)
                made.wait()
        made.range("Optimizer.step#SGD.step", 5, lambda: made.launch(100))
        made.wait()

    return steps(write)


def traveling(dtype: str, in_nelems: int = GRADIENTS) -> Case:
    """A product in bfloat16, and an all-reduce that nothing hides."""

    def write(made: MadeTrace) -> None:
        made.op("aten::mm", 5, lambda: made.launch(1000, "sm90_gemm_bf16bf16"))
        made.wait()
        reduce(made, 1000, dtype=dtype, in_nelems=in_nelems)
        made.wait()

    return steps(write)


# Memory


def recomputing(with_autograd: bool) -> Case:
    """An op of the forward pass, and the same in backward, which autograd records or does not."""

    def again(made: MadeTrace) -> None:
        numbers = {"sequence_number": 2} if with_autograd else {}
        made.op("aten::linear", 1000, **numbers)

    def write(made: MadeTrace) -> None:
        made.op("aten::linear", 1000, sequence_number=1)
        made.op(BACKWARD, 2000, lambda: again(made))

    return steps(write)


HALF = 1 << 27
"""Of bfloat16 numbers. Adding two such tensors moves 0.8 GB, which 3.35 TB/s do in 240 µs."""


def on_halves(made: MadeTrace, op: str, us: int, inputs: int = 2, number: int = HALF) -> None:
    """One op on so many tensors of bfloat16."""
    made.op(
        op,
        5,
        lambda: made.launch(us),
        input_dims=json.dumps([[number]] * inputs),
        input_types=json.dumps(["c10::BFloat16"] * inputs),
    )


def adding(us: int) -> Case:
    """Two additions in a row of 2^27 bfloat16 numbers."""

    def make(folder: Path) -> OpenedProfile:
        made = MadeTrace(folder, GPU)

        def body() -> None:
            on_halves(made, "aten::add", us)
            on_halves(made, "aten::add", us)
            made.launch(300)
            made.wait()

        return made.steps(4, body).open()

    return make


# The device


def blocks(number: int) -> Case:
    """A kernel of so many blocks on a GPU of 132 multiprocessors."""

    def make(folder: Path) -> OpenedProfile:
        made = MadeTrace(folder, GPU)

        def body() -> None:
            made.op("aten::mm", 5, lambda: made.launch(500, grid=f"[{number}, 2, 1]"))
            made.launch(500, grid="[4096, 1, 1]")
            made.wait()

        made.steps(4, body)
        return made.open(metadata={"deviceProperties": json.dumps([{"id": 0, "numSms": 132}])})

    return make


def copying(name: str, us: int, op: str = "aten::copy_") -> Case:
    """A copy that comes between two kernels."""

    def write(made: MadeTrace) -> None:
        made.launch(500)
        made.op(op, 5, lambda: made.launch(us, name, kind=SliceKind.MEMCPY, call="cudaMemcpyAsync"))
        made.launch(500)
        made.wait()

    return steps(write)


# Recordings


def unlinked(us: int) -> Case:
    """Each step of 1 ms has work of so many µs whose launch is not there."""

    def make(folder: Path) -> OpenedProfile:
        made = MadeTrace(folder)
        other = made.builder.stream(0, 8, name="NVIDIA A100-SXM4-80GB")

        def body() -> None:
            start = made.now
            made.op("aten::mm", 5, lambda: made.launch(1000))
            made.wait()
            made.builder.slice(other, "kernel", start * 1000, us * 1000, SliceKind.KERNEL)

        return made.steps(4, body).open()

    return make


def before_launch(us: int) -> Case:
    """Kernels that begin so many µs before their launch."""

    def make(folder: Path) -> OpenedProfile:
        made = MadeTrace(folder)
        stream = made.builder.stream(0, 7, name="NVIDIA A100-SXM4-80GB")

        def body() -> None:
            made.gap(100)
            made._correlation += 1
            ids = {"correlation": made._correlation}
            start = made.now
            made._around("cudaLaunchKernel", SliceKind.RUNTIME, lambda: made.gap(5), **ids)
            made.builder.slice(
                stream, "kernel", (start - us) * 1000, 100_000, SliceKind.KERNEL, **ids
            )
            made.op("aten::mm", 200)

        return made.steps(4, body).open()

    return make


def graphs(pieces: int) -> Case:
    """One call launches so many kernels of 10 µs; another kernel takes 100."""

    def make(folder: Path) -> OpenedProfile:
        made = MadeTrace(folder)
        stream = made.builder.stream(0, 9, name="NVIDIA A100-SXM4-80GB")

        def body() -> None:
            start = made.now
            made.launch(100, call="cudaGraphLaunch")
            for at in range(pieces):
                made.builder.slice(
                    stream, "kernel", (start + 10 + 10 * at) * 1000, 10_000, SliceKind.KERNEL,
                    correlation=made._correlation,
                )  # fmt: skip
            made.op("aten::mm", 600)

        return made.steps(4, body).open()

    return make


DEVICE_CASES: dict[str, RuleCases] = {
    "CM03": RuleCases(barrier(1), barrier(4), CPU_ONLY),
    "CM04": RuleCases(after_backward(late=True), after_backward(late=False), KERNELS_ONLY),
    "CM05": RuleCases(
        micro_batches((True, True)), micro_batches((False, True)), KERNELS_ONLY
    ),
    "CM06": RuleCases(traveling("float32"), traveling("bfloat16"), KERNELS_ONLY),
    "ME02": RuleCases(recomputing(True), recomputing(False), nothing),
    "ME03": RuleCases(adding(300), adding(600), host(("aten::add", 1000))),
    "DE01": RuleCases(blocks(24), blocks(70), CPU_ONLY),
    "DE02": RuleCases(
        copying("Memcpy HtoD (Pinned -> Device)", 300),
        copying("Memcpy HtoD (Pinned -> Device)", 30), CPU_ONLY,
    ),
    "DE03": RuleCases(
        copying("Memcpy DtoD (Device -> Device)", 300),
        copying("Memcpy DtoD (Device -> Device)", 30), CPU_ONLY,
    ),
    "NE01": RuleCases(falling_back(2), falling_back(0), KERNELS_ONLY),
    "NE02": RuleCases(one_by_one(40), one_by_one(400), KERNELS_ONLY),
    "NE03": RuleCases(compiling((1, 2)), compiling((0,)), KERNELS_ONLY),
    "NE04": RuleCases(compiling((0,)), compiling(()), KERNELS_ONLY),
    "NE05": RuleCases(switching(200), switching(20), KERNELS_ONLY),
    "NE06": RuleCases(moving(16 << 10, 5_000), moving(1 << 20, 5_000), KERNELS_ONLY),
    "NE07": RuleCases(
        tables(Instruction=instructions("vector", 9_000)),
        tables(Instruction=instructions("vector", 5_000)), KERNELS_ONLY,
    ),
    "NE08": RuleCases(moving(1 << 20, 5_000), moving(1 << 20, 2_000), KERNELS_ONLY),
    "NE09": RuleCases(spilling(500), spilling(200), KERNELS_ONLY),
    "NE10": RuleCases(throttling(5_000), throttling(500), KERNELS_ONLY),
    "NE11": RuleCases(waiting(1000), waiting(100), KERNELS_ONLY),
    "CA05": RuleCases(unlinked(300), unlinked(50), CPU_ONLY),
    "CA06": RuleCases(before_launch(50), before_launch(3), CPU_ONLY),
    "CA07": RuleCases(graphs(40), graphs(8), CPU_ONLY),
}  # fmt: skip
