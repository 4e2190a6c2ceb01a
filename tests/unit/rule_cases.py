"""For each rule a trace that fires it, one that nearly does, and one that lacks its data."""

from __future__ import annotations

from pathlib import Path

from tests.unit.made_trace import MadeTrace
from tests.unit.rule_case import CPU_ONLY, MULTI, SINGLE, Case, RuleCases, host, nothing, steps
from tests.unit.rule_cases_device import DEVICE_CASES
from tests.unit.rule_cases_host import HOST_CASES
from trnscope.capture.record import CaptureRecord, record_path
from trnscope.model.health import Health, HealthWarning
from trnscope.model.kinds import SliceKind
from trnscope.opened import OpenedProfile

HTOD = "Memcpy HtoD (Pageable -> Device)"
PINNED = "Memcpy HtoD (Pinned -> Device)"


def copies(name: str, share_us: int) -> Case:
    def write(made: MadeTrace) -> None:
        made.launch(share_us, name, kind=SliceKind.MEMCPY, call="cudaMemcpyAsync", blocking=True)
        made.op("aten::mm", 5, lambda: made.launch(1000))
        made.wait()

    return steps(write)


def reading(each_us: int) -> Case:
    """Host work in two halves; the device idles in the second because of the read between."""

    def write(made: MadeTrace) -> None:
        made.op("aten::forward", 300, lambda: made.launch(600))
        made.op("aten::item", 2, lambda: made.wait("cudaStreamSynchronize"))
        made.op("aten::backward", each_us)
        made.launch(600)

    return steps(write, 8)


def device_bound_reading(made: MadeTrace) -> None:
    made.op("aten::mm", 5, lambda: made.launch(5000))
    made.op("aten::item", 2, made.wait)


def launching(kernel_us: int) -> Case:
    def write(made: MadeTrace) -> None:
        for _ in range(60):
            made.op("aten::add", 20, lambda: made.launch(kernel_us))

    return steps(write)


def python_gap(us: int) -> Case:
    def write(made: MadeTrace) -> None:
        made.op("aten::mm", 3000)
        made.gap(us)
        made.op("aten::add", 10)

    return steps(write)


def collecting(us: int) -> Case:
    def write(made: MadeTrace) -> None:
        made.frame("train.py(3): train", 0, lambda: made.op("aten::mm", 5000))
        made.frame("<built-in function collect>", us)

    return steps(write)


def sampling(us: int) -> Case:
    def inner(made: MadeTrace) -> None:
        made.frame("data.py(8): __getitem__", 40, lambda: made.frame("data.py(20): decode", us))

    def write(made: MadeTrace) -> None:
        made.range(SINGLE, 900 - us, lambda: inner(made))
        made.op("aten::mm", 2000)

    return steps(write)


def recorded_with(threads: int) -> Case:
    """Beside the trace lies a record of a run on two processors."""

    def make(folder: Path) -> OpenedProfile:
        profile = host(("aten::mm", 1000))(folder)
        record = CaptureRecord(pid=1, num_cpus=2, num_threads=threads)
        record.write(record_path(Path(profile.traces[0].source.path)))
        return profile

    return make


def tiny(number: int) -> Case:
    return host(*[("aten::add", 8)] * number, ("aten::mm", 1000))


def optimizing(op: str, number: int) -> Case:
    def write(made: MadeTrace) -> None:
        made.op("aten::mm", 3000)
        made.range("Optimizer.step#AdamW.step", 0, lambda: [made.op(op, 10) for _ in range(number)])  # type: ignore[arg-type,return-value]

    return steps(write)


NORM = ("aten::pow", "aten::mean", "aten::add", "aten::rsqrt", "aten::mul", "aten::mul")
SPREAD = ("aten::pow", "aten::mean", "aten::add", "aten::rsqrt", "aten::mm")
GELU = ("aten::pow", "aten::mul", "aten::add", "aten::mul", "aten::tanh", "aten::add", "aten::mul")
ATTENTION = ("aten::matmul", "aten::div", "aten::add", "aten::softmax", "aten::matmul")
CLASSIFIER = ("aten::matmul", "aten::div", "aten::add", "aten::softmax", "aten::nll_loss")


def around(names: tuple[str, ...], us: int = 100) -> Case:
    """Ops between two long ones."""
    return host(("aten::linear", 1000), *((name, us) for name in names), ("aten::linear", 1000))


def kernels(name: str, device: str = "NVIDIA A100-SXM4-80GB", us: int = 1000) -> Case:
    def make(folder: Path) -> OpenedProfile:
        made = MadeTrace(folder, device)

        def body() -> None:
            made.op("aten::mm", 5, lambda: made.launch(us, name))
            made.launch(1000, "other")
            made.wait()

        return made.steps(4, body).open()

    return make


def copying(outer: str, inner: str, us: int) -> Case:
    def write(made: MadeTrace) -> None:
        made.op("aten::mm", 2000)
        made.op(outer, 5, lambda: made.op(inner, us))

    return steps(write)


def products(dims: str | None, number: int) -> Case:
    def write(made: MadeTrace) -> None:
        for _ in range(number):
            if dims is None:
                made.op("aten::mm", 20)
            else:
                made.op("aten::mm", 20, input_dims=dims)
        made.op("aten::conv2d", 1000, input_dims="[[1,3,8,8],[4,3,3,3]]")

    return steps(write)


def without_shapes(folder: Path) -> OpenedProfile:
    return host(*[("aten::mm", 20)] * 80)(folder)


def reducing(beside: bool) -> Case:
    def write(made: MadeTrace) -> None:
        made.launch(2000, "backward")
        made.launch(1000, "reduce", kind=SliceKind.COLLECTIVE, stream=20 if beside else 7)
        made.wait()

    return steps(write)


def messages(number: int) -> Case:
    def write(made: MadeTrace) -> None:
        for _ in range(number):
            made.op(
                "c10d::allreduce_", 20, lambda: made.launch(10, "reduce", kind=SliceKind.COLLECTIVE)
            )
        made.launch(500, "backward")
        made.wait()

    return steps(write)


def allocating(us: int) -> Case:
    def write(made: MadeTrace) -> None:
        made.launch(3000)
        made.wait()
        made.call("cudaMalloc", us)

    return steps(write)


def compiling(compile_id: str, in_step: bool = True) -> Case:
    def compile_it(made: MadeTrace) -> None:
        made.op(
            "entire_frame_compile (dynamo_timed)",
            50_000,
            lambda: made.range(f"dynamo_data: compile_id={compile_id}", 10),
        )

    def make(folder: Path) -> OpenedProfile:
        made = MadeTrace(folder)
        if not in_step:
            compile_it(made)
        made.step(lambda: (compile_it(made) if in_step else None, made.op("aten::mm", 900)))  # type: ignore[arg-type,return-value]
        return made.steps(5, lambda: made.op("aten::mm", 1000)).open()

    return make


def pieces(*regions: str) -> Case:
    def write(made: MadeTrace) -> None:
        for region in regions:
            made.op(f"Torch-Compiled Region: {region}", 500)
            made.gap(200)

    return steps(write)


def without_steps(folder: Path) -> OpenedProfile:
    made = MadeTrace(folder)
    made.op("aten::mm", 100)
    return made.open()


def first_step(us: int) -> Case:
    def make(folder: Path) -> OpenedProfile:
        made = MadeTrace(folder)
        made.step(lambda: made.op("aten::mm", us))
        return made.steps(4, lambda: made.op("aten::mm", 100)).open()

    return make


def damaged(complete: bool) -> Case:
    def make(folder: Path) -> OpenedProfile:
        made = MadeTrace(folder)
        made.steps(2, lambda: made.op("aten::mm", 100))
        warning = HealthWarning("cut-off", "the file is cut off: line 3", 1)
        return made.open(health=Health(complete, 3, 1, 0, (warning,)))

    return make


def overhead(us: int) -> Case:
    def write(made: MadeTrace) -> None:
        made.op("aten::mm", 1000)
        made._around("Activity Buffer Request", SliceKind.OVERHEAD, lambda: made.gap(us))

    return steps(write)


CASES: dict[str, RuleCases] = {
    "IN01": RuleCases(
        host((MULTI, 900), ("aten::mm", 1000)), host((MULTI, 20), ("aten::mm", 1000)), nothing
    ),
    "IN02": RuleCases(
        host((SINGLE, 900), ("aten::mm", 1000)), host((SINGLE, 20), ("aten::mm", 1000)), nothing
    ),
    "IN03": RuleCases(sampling(800), sampling(300), host((SINGLE, 900), ("aten::mm", 1000))),
    "IN04": RuleCases(copies(HTOD, 300), copies(PINNED, 300), CPU_ONLY),
    "HO01": RuleCases(reading(400), steps(device_bound_reading), CPU_ONLY),
    "HO02": RuleCases(launching(4), launching(40), CPU_ONLY),
    "HO03": RuleCases(python_gap(900), python_gap(450), nothing),
    "HO04": RuleCases(collecting(900), collecting(90), python_gap(900)),
    "HO05": RuleCases(recorded_with(16), recorded_with(2), CPU_ONLY),
    "OP01": RuleCases(tiny(400), tiny(250), nothing),
    "OP02": RuleCases(
        optimizing("aten::mul_", 120), optimizing("aten::_foreach_mul_", 120), nothing
    ),
    "OP03": RuleCases(around(NORM), around(SPREAD), nothing),
    "OP04": RuleCases(around(GELU), around(GELU[:3]), nothing),
    "OP05": RuleCases(
        kernels("ampere_sgemm_128x64_nn"), kernels("ampere_bf16_s16816gemm_128x64"), CPU_ONLY
    ),
    "OP06": RuleCases(
        copying("aten::contiguous", "aten::copy_", 500), copying("aten::to", "aten::copy_", 500),
        nothing,
    ),
    "OP07": RuleCases(
        copying("aten::to", "aten::_to_copy", 500), copying("aten::to", "aten::_to_copy", 20),
        nothing,
    ),
    "OP08": RuleCases(around(ATTENTION), around(CLASSIFIER), nothing),
    "OP09": RuleCases(
        products("[[64,64],[64,64]]", 80), products("[[512,512],[512,512]]", 80), without_shapes
    ),
    "CM01": RuleCases(reducing(beside=False), reducing(beside=True), kernels("other")),
    "CM02": RuleCases(messages(100), messages(40), kernels("other")),
    "ME01": RuleCases(allocating(300), allocating(30), CPU_ONLY),
    "CO01": RuleCases(compiling("0/0"), compiling("0/0", in_step=False), nothing),
    "CO02": RuleCases(compiling("0/1"), compiling("0/0"), nothing),
    "CO03": RuleCases(pieces("0/0", "1/0", "2/0"), pieces("0/0", "0/0", "1/0"), nothing),
    "CA01": RuleCases(without_steps, CPU_ONLY, nothing),
    "CA02": RuleCases(first_step(500), first_step(250), without_steps),
    "CA03": RuleCases(damaged(complete=False), damaged(complete=True), CPU_ONLY),
    "CA04": RuleCases(overhead(100), overhead(40), CPU_ONLY),
    **DEVICE_CASES,
    **HOST_CASES,
}  # fmt: skip
