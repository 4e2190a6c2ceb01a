"""The three traces of each rule about the input, Python, single ops and the compiler."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.unit.made_trace import MadeTrace
from tests.unit.rule_case import MULTI, SINGLE, Case, RuleCases, host, nothing, steps
from trnscope.capture.record import CaptureRecord, record_path
from trnscope.model.kinds import SliceKind
from trnscope.opened import OpenedProfile

NODE = "autograd::engine::evaluate_function: AddmmBackward0"
MODULE = "torch/nn/modules/module.py"
LOADER = "torch/utils/data/dataloader.py"
WITHOUT_STACKS = host(("aten::mm", 1000))
Write = Callable[[MadeTrace], None]


def workers(number: int) -> Case:
    """Steps that wait for a batch, beside the record of a run on four processors."""

    def make(folder: Path) -> OpenedProfile:
        profile = host((MULTI, 900), ("aten::mm", 1000))(folder)
        record = CaptureRecord(pid=1, num_cpus=4, num_workers=number)
        record.write(record_path(Path(profile.traces[0].source.path)))
        return profile

    return make


def epochs(starts_process: bool) -> Case:
    """Every other step begins an epoch with a new iterator of the loader."""

    def start(made: MadeTrace) -> None:
        if starts_process:
            made.frame(f"{LOADER}(1606): _shutdown_workers", 300)
            made.frame(
                f"{LOADER}(1101): __init__",
                100,
                lambda: made.frame("multiprocessing/process.py(110): start", 600),
            )
        else:
            made.frame(f"{LOADER}(1233): _reset", 100)

    def make(folder: Path) -> OpenedProfile:
        made = MadeTrace(folder)
        for number in range(6):
            made.step(lambda: _in_order(made, start if number % 2 else None))  # noqa: B023
        return made.open()

    def _in_order(made: MadeTrace, first: Write | None) -> None:
        if first is not None:
            first(made)
        made.op("aten::mm", 1000)

    return make


def collating(us: int) -> Case:
    def inner(made: MadeTrace) -> None:
        made.frame("data.py(8): __getitem__", 800 - us)
        made.frame("torch/utils/data/_utils/collate.py(340): default_collate", us)

    def write(made: MadeTrace) -> None:
        made.range(SINGLE, 100, lambda: inner(made))
        made.op("aten::mm", 2000)

    return steps(write)


def preparing(us: int) -> Case:
    def write(made: MadeTrace) -> None:
        made.range(SINGLE, 50)
        made.op("aten::flip", us)
        made.frame("nn.Module: Model_0", 0, lambda: made.op("aten::mm", 1000))

    return steps(write)


def reading(number: int) -> Case:
    return host(("aten::mm", 1000), *[("aten::select", 5), ("aten::item", 5)] * number)


def backward(check: str, number: int = 8) -> Case:
    """A backward of nodes of which each looks at its result."""

    def node(made: MadeTrace) -> None:
        made.op("aten::mm", 100)
        made.op(check, 60, lambda: made.op("aten::ne", 30))

    def write(made: MadeTrace) -> None:
        made.op("aten::addmm", 1000)
        for _ in range(number):
            made.op(NODE, 5, lambda: node(made))

    return steps(write)


def rarely(times: int, write_it: Write) -> Case:
    """Eight steps, of which the first ones also do something else."""

    def make(folder: Path) -> OpenedProfile:
        made = MadeTrace(folder)

        def step(also: bool) -> None:
            made.op("aten::mm", 1000)
            if also:
                write_it(made)

        for number in range(8):
            made.step(lambda: step(number < times))  # noqa: B023
        return made.open()

    return make


def saving(made: MadeTrace) -> None:
    made.frame("torch/serialization.py(944): save", 1500)


def evaluating(made: MadeTrace) -> None:
    made.frame(f"{MODULE}(3000): eval", 5, lambda: made.frame(f"{MODULE}(2980): train", 5))
    made.op("aten::mm", 1500)
    made.frame(f"{MODULE}(2980): train", 5)


def clipping(norm: str, number: int, scale: str = "aten::mul_", dims: str = "[[9],[]]") -> Case:
    """So many norms of gradients, and an op that scales (or something else) for each."""

    def write(made: MadeTrace) -> None:
        made.op("aten::addmm", 1000)
        made.op(NODE, 500)
        for _ in range(number):
            made.op(norm, 20)
            made.op(scale, 20, input_dims=dims)
        made.range("Optimizer.step#SGD.step", 100)

    return steps(write)


def hooking(node: str) -> Case:
    """A function of the program's own inside of backward, in a node of this name or beside it."""

    def inner(made: MadeTrace) -> None:
        made.op("AddmmBackward0", 100, lambda: made.op("aten::mm", 300))
        call = lambda: made.frame("train.py(12): watch", 400)  # noqa: E731
        made.op(node, 5, call) if node else call()  # type: ignore[func-returns-value]

    def write(made: MadeTrace) -> None:
        made.op("aten::addmm", 1000)
        made.op(NODE, 5, lambda: inner(made))

    return steps(write)


def zeroing(op: str) -> Case:
    """Gradients are filled by this op, and backward adds to them."""

    def write(made: MadeTrace) -> None:
        made.range("Optimizer.zero_grad#SGD.zero_grad", 10, lambda: made.op(op, 300))
        made.op("aten::addmm", 1000)
        made.op(
            "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad",
            5,
            lambda: made.op("aten::add_", 300),
        )

    return steps(write)


def looking_up(rows: int) -> Case:
    """A dense gradient of a table of so many rows, and one op of the optimizer on all of it."""
    table = f"[{rows},32]"

    def write(made: MadeTrace) -> None:
        made.op("aten::embedding", 100, input_dims=f"[{table},[256],[],[],[]]")
        made.op("aten::mm", 1000)
        made.op("aten::embedding_dense_backward", 400, input_dims="[[256,32],[256],[],[],[]]")
        made.range(
            "Optimizer.step#SGD.step",
            10,
            lambda: made.op("aten::add_", 400, input_dims=f"[{table},{table},[]]"),
        )

    return steps(write)


def multiplying(dtype: str) -> Case:
    def write(made: MadeTrace) -> None:
        made.op(
            "aten::mm",
            1000,
            input_dims="[[256,512],[512,512]]",
            input_types=f'["{dtype}","{dtype}"]',
        )

    return steps(write)


def copying(waits: bool) -> Case:
    """A copy from pinned memory in an op that waits for it, or not."""

    def copy(made: MadeTrace) -> None:
        name = "Memcpy HtoD (Pinned -> Device)"
        made.launch(100, name, kind=SliceKind.MEMCPY, call="cudaMemcpyAsync")
        if waits:
            made.wait()

    def write(made: MadeTrace) -> None:
        made.op("aten::copy_", 5, lambda: copy(made))
        made.op("aten::where", 600)
        made.op("aten::mm", 5, lambda: made.launch(1000))

    return steps(write, 8)


def copying_samples(number: int) -> Case:
    def copy(made: MadeTrace) -> None:
        name = "Memcpy HtoD (Pageable -> Device)"
        made.launch(3, name, kind=SliceKind.MEMCPY, call="cudaMemcpyAsync", blocking=True)

    def write(made: MadeTrace) -> None:
        for _ in range(number):
            made.op("aten::to", 10, lambda: copy(made))
        made.op("aten::mm", 5, lambda: made.launch(500))
        made.wait()

    return steps(write)


def compiled(runs: int) -> Case:
    """So many calls of one compiled piece, of which the code takes a third."""

    def write(made: MadeTrace) -> None:
        for _ in range(runs):
            made.op(
                "Torch-Compiled Region: 0/1",
                200,
                lambda: made.op("## Call CompiledFxGraph fs2bd ##", 100),
            )

    return steps(write)


LOSS = ("aten::softmax", "aten::log", "aten::mul", "aten::sum", "aten::mean", "aten::neg")
FULL, TRIU, SDPA = "aten::full", "aten::triu", "aten::_scaled_dot_product_attention_math"


def between(*names: str) -> Case:
    """Ops of 200 µs between two long ones."""
    return host(("aten::linear", 1000), *((name, 200) for name in names), ("aten::linear", 1000))


def masking(shape: str) -> Case:
    """Ones of 64 x 64, and then the triangle of a tensor of this shape."""

    def write(made: MadeTrace) -> None:
        made.op("aten::linear", 1000)
        made.op("aten::ones", 200, input_dims="[[]]", concrete_inputs='["[64, 64]"]')
        made.op("aten::triu", 200, input_dims=f"[{shape},[]]", concrete_inputs='["", "1"]')
        made.op("aten::linear", 1000)

    return steps(write)


HOST_CASES: dict[str, RuleCases] = {
    "IN05": RuleCases(workers(1), workers(4), host((MULTI, 900), ("aten::mm", 1000))),
    "IN06": RuleCases(epochs(True), epochs(False), WITHOUT_STACKS),
    "IN07": RuleCases(collating(600), collating(300), WITHOUT_STACKS),
    "IN08": RuleCases(preparing(800), preparing(30), host((SINGLE, 900), ("aten::mm", 1000))),
    "IN09": RuleCases(copying(True), copying(False), WITHOUT_STACKS),
    "IN10": RuleCases(copying_samples(40), copying_samples(30), WITHOUT_STACKS),
    "HO06": RuleCases(reading(60), reading(40), nothing),
    "HO07": RuleCases(backward("aten::isnan"), backward("aten::abs"), nothing),
    "HO08": RuleCases(rarely(2, saving), rarely(1, saving), WITHOUT_STACKS),
    "HO09": RuleCases(rarely(2, evaluating), rarely(1, evaluating), WITHOUT_STACKS),
    "HO10": RuleCases(
        clipping("aten::linalg_vector_norm", 20), clipping("aten::linalg_vector_norm", 12), nothing
    ),
    "HO11": RuleCases(hooking(""), hooking("CheckpointFunctionBackward"), WITHOUT_STACKS),
    "HO12": RuleCases(zeroing("aten::zero_"), zeroing("aten::mul_"), nothing),
    "OP10": RuleCases(between("aten::one_hot", *LOSS), between(*LOSS), nothing),
    "OP11": RuleCases(masking("[64,64]"), masking("[64,32]"), between(FULL, TRIU)),
    "OP12": RuleCases(looking_up(100_000), looking_up(2_000), WITHOUT_STACKS),
    "OP13": RuleCases(between(SDPA, SDPA), between("aten::_scaled_dot_product_flash"), nothing),
    "OP14": RuleCases(
        between(*["aten::lstm_cell"] * 10), between(*["aten::lstm_cell"] * 7), nothing
    ),
    "CO04": RuleCases(compiled(9), compiled(7), nothing),
    "OP15": RuleCases(multiplying("double"), multiplying("float"), WITHOUT_STACKS),
}  # fmt: skip
