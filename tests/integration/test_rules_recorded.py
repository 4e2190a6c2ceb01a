"""Rules on small programs that torch really recorded: with the fault, and without it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import trnscope

torch = pytest.importorskip("torch")

from torch import Tensor, nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402
from torch.profiler import ProfilerActivity, profile, schedule  # noqa: E402
from torch.utils.data import DataLoader, Dataset  # noqa: E402

Step = Callable[[], None]
STEPS, WARM_UP = 8, 2


def training(
    model: Callable[..., Tensor],
    parameters: list[Tensor],
    loss: Callable[[Tensor], Tensor] = lambda y: y.float().square().mean(),
    after: Callable[[], None] | None = None,
    **reset: bool,
) -> Step:
    """A step of SGD."""
    optimizer = torch.optim.SGD(parameters, lr=1e-3)

    def step() -> None:
        optimizer.zero_grad(**reset)
        loss(model()).backward()
        if after is not None:
            after()
        optimizer.step()

    return step


def zeroed(is_fault: bool) -> Step:
    layers = nn.Sequential(*[nn.Linear(768, 768) for _ in range(4)])
    x = torch.ones(2, 768)
    return training(lambda: layers(x), list(layers.parameters()), set_to_none=not is_fault)


def anomaly(is_fault: bool) -> Step:
    layers = nn.Sequential(*[nn.Linear(64, 64) for _ in range(8)])
    step = training(lambda: layers(torch.ones(8, 64)), list(layers.parameters()))

    def with_detection() -> None:
        with torch.autograd.set_detect_anomaly(is_fault):
            step()

    return with_detection


def clipping(is_fault: bool) -> Step:
    layers = nn.Sequential(*[nn.Linear(32, 32) for _ in range(20)])
    parameters = list(layers.parameters())

    def by_hand() -> None:
        for one in parameters:
            assert one.grad is not None
            one.grad.mul_(torch.clamp(1.0 / (one.grad.norm() + 1e-6), max=1.0))

    def at_once() -> None:
        nn.utils.clip_grad_norm_(parameters, 1.0)

    after = by_hand if is_fault else at_once
    return training(lambda: layers(torch.ones(8, 32)), parameters, after=after)


def reading(is_fault: bool) -> Step:
    layer = nn.Linear(64, 64)
    seen: list[float] = []

    def read() -> None:
        weights = layer.weight.detach()[:32].flatten()
        seen.extend([one.item() for one in weights] if is_fault else weights.tolist())

    return training(lambda: layer(torch.ones(8, 64)), list(layer.parameters()), after=read)


def hooking(is_fault: bool) -> Step:
    layers = nn.Sequential(*[nn.Linear(64, 64) for _ in range(8)])
    seen: list[float] = []

    def watch(gradient: Tensor) -> None:
        seen.append(float(gradient.abs().max()) + float(gradient.mean()))

    if is_fault:
        for one in layers.parameters():
            one.register_hook(watch)
    return training(lambda: layers(torch.ones(8, 64)), list(layers.parameters()))


def cross_entropy(is_fault: bool) -> Step:
    scores = nn.Parameter(torch.randn(256, 4096))
    targets = torch.arange(256)

    def by_hand(y: Tensor) -> Tensor:
        return -(F.one_hot(targets, 4096).float() * torch.log(torch.softmax(y, -1))).sum(-1).mean()

    loss = by_hand if is_fault else lambda y: F.cross_entropy(y, targets)
    return training(lambda: scores * 2, [scores], loss)


def masking(is_fault: bool) -> Step:
    tokens, layer = 1024, nn.Linear(8, 8)
    kept = torch.tril(torch.ones(tokens, tokens))

    def model() -> Tensor:
        mask = torch.tril(torch.ones(tokens, tokens)) if is_fault else kept
        return mask @ layer(torch.ones(tokens, 8))

    return training(model, list(layer.parameters()))


def embedding(is_fault: bool) -> Step:
    table = nn.Embedding(50_000, 32, sparse=not is_fault)
    rows = torch.arange(0, 50_000, 500)
    return training(lambda: table(rows), list(table.parameters()))


def attention(is_fault: bool) -> Step:
    layer = nn.Linear(32, 32)

    def model() -> Tensor:
        x = layer(torch.ones(2, 2, 256, 32))
        return F.scaled_dot_product_attention(x, x, x, dropout_p=0.1 if is_fault else 0.0)

    return training(model, list(layer.parameters()))


def recurrent(is_fault: bool) -> Step:
    x = torch.ones(8, 24, 32)
    if not is_fault:
        layer = nn.LSTM(32, 32, batch_first=True)
        return training(lambda: layer(x)[0], list(layer.parameters()))
    cell = nn.LSTMCell(32, 32)

    def model() -> Tensor:
        h = c = torch.zeros(8, 32)
        for at in range(x.shape[1]):
            h, c = cell(x[:, at], (h, c))
        return h

    return training(model, list(cell.parameters()))


def float64(is_fault: bool) -> Step:
    layer = nn.Linear(512, 512, dtype=torch.float64 if is_fault else torch.float32)
    x = torch.ones(128, 512, dtype=layer.weight.dtype)
    return training(lambda: layer(x), list(layer.parameters()))


def evaluating(is_fault: bool) -> Step:
    layers = nn.Sequential(*[nn.Linear(256, 256) for _ in range(4)])
    x = torch.ones(64, 256)

    def evaluate() -> None:
        layers.eval()
        with torch.no_grad():
            for _ in range(4):
                layers(x)
        layers.train()

    after = evaluate if is_fault else None
    return training(lambda: layers(x), list(layers.parameters()), after=after)


def saving(is_fault: bool, folder: Path) -> Step:
    layers = nn.Sequential(*[nn.Linear(256, 256) for _ in range(4)])
    after = (lambda: torch.save(layers.state_dict(), folder / "model.pt")) if is_fault else None
    x = torch.ones(64, 256)
    return training(lambda: layers(x), list(layers.parameters()), after=after)


def scaling_by_numbers() -> Step:
    """Numbers of Python beside float32 tensors."""
    layer, x = nn.Linear(512, 512), torch.ones(256, 512)

    def model() -> Tensor:
        y = layer(x)
        for _ in range(6):
            y = (y * 0.5 + 0.25) / 1.5
        return y

    return training(model, list(layer.parameters()))


def pooling() -> Step:
    """Attention over chosen rows: a softmax, a product and a sum, and no classes."""
    layer, bank, rows = nn.Linear(256, 256), torch.randn(4096, 256), torch.arange(4095, -1, -1)

    def model() -> Tensor:
        query = layer(torch.ones(64, 256))
        keys = bank[rows]
        weights = torch.softmax(keys.mul(query.mean(0)).add(query.mean()), 0)
        return (weights * keys).sum(0)

    return training(model, list(layer.parameters()), Tensor.mean)


def sines_of_activations() -> Step:
    """A tensor of zeros, then sines of activations of the same shape (SIREN)."""
    layer, x = nn.Linear(256, 256), torch.ones(512, 256)

    def model() -> Tensor:
        hidden, state = layer(x), torch.zeros(512, 256)
        return torch.sin(30 * torch.sin(30 * hidden)) + state

    return training(model, list(layer.parameters()), Tensor.mean)


def embedding_of_times(times: int) -> Step:
    """Sines of the times that were drawn, as diffusion models take them."""
    layer = nn.Linear(256, 8)

    def model() -> Tensor:
        drawn = torch.rand(times)
        angles = drawn[:, None].mul(torch.arange(128).float().mul(-0.07).exp())
        return layer(torch.cat([angles.sin(), angles.cos()], 1))

    return training(model, list(layer.parameters()), Tensor.mean)


def mask_of_lengths() -> Step:
    """Which places of each sample are filled: positions beside lengths that are data."""
    layer, lengths = nn.Linear(1, 1), torch.arange(1, 1025)

    def model() -> Tensor:
        return layer((torch.arange(2048)[None] < lengths[:, None]).float()[..., None])

    return training(model, list(layer.parameters()), Tensor.mean)


def mask_of_positions() -> Step:
    """A causal mask from a comparison."""
    layer = nn.Linear(8, 8)

    def model() -> Tensor:
        at = torch.arange(1024)
        allowed = (at[None, :] <= at[:, None]).expand(2, 1024, 1024)
        return ((1.0 - allowed.float()) * -10000.0) @ layer(torch.ones(1024, 8))

    return training(model, list(layer.parameters()))


def sines_of_positions() -> Step:
    """The position encoding of the first transformers."""
    layer = nn.Linear(256, 8)

    def model() -> Tensor:
        encoding, position = torch.zeros(1024, 256), torch.arange(1024).unsqueeze(1)
        angles = position * torch.exp(torch.arange(0, 256, 2) * -0.04)
        encoding[:, 0::2] = torch.sin(angles)
        encoding[:, 1::2] = torch.cos(angles)
        return layer(encoding)

    return training(model, list(layer.parameters()))


def distilling(teacher_first: bool) -> Step:
    """A teacher is set to eval() and asked in each step."""
    teacher, x = nn.Linear(256, 256), torch.ones(512, 256)
    student = nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 256))

    def model() -> Tensor:
        if not teacher_first:
            student.train()
        teacher.eval()
        with torch.no_grad():
            told = teacher(x)
        if teacher_first:
            student.train()
        return student(x) - told

    return training(model, list(student.parameters()))


class Frozen(nn.Module):
    """A norm that stays in eval() whenever the model is set to train()."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.norm = nn.Linear(512, 512), nn.BatchNorm1d(512)

    def train(self, mode: bool = True) -> Frozen:
        """All but the norm."""
        super().train(mode)
        self.norm.eval()
        return self

    def forward(self, x: Tensor) -> Tensor:
        """A layer and its norm."""
        normed: Tensor = self.norm(self.layer(x))
        return normed


def freezing() -> Step:
    frozen, x = Frozen(), torch.ones(256, 512)
    return training(lambda: frozen.train()(x), list(frozen.parameters()), Tensor.mean)


def compiled_without_code() -> Step:
    """Pieces that a backend runs op by op: the trace shows no compiled code in them."""
    torch.compiler.reset()
    layers = nn.ModuleList(nn.Sequential(nn.Linear(64, 64), nn.ReLU()) for _ in range(10))
    pieces = [torch.compile(one, backend="aot_eager") for one in layers]

    def model() -> Tensor:
        x = torch.ones(64, 64)
        for piece in pieces:
            x = piece(x)
        return x

    return training(model, list(layers.parameters()))


class Noise(Dataset[Tensor]):
    """Samples, made by the dataset or left to the training loop (the fault)."""

    def __init__(self, is_fault: bool) -> None:
        self.is_fault = is_fault

    def __len__(self) -> int:
        return 1000

    def __getitem__(self, index: int) -> Tensor:
        sample = torch.ones(64, 64)
        return sample if self.is_fault else blur(sample)


def blur(x: Tensor) -> Tensor:
    """A preparation that takes its time."""
    for _ in range(20):
        x = (x + x.roll(1, -1) + x.roll(1, -2)) / 3
    return x


def preparing(is_fault: bool) -> Step:
    batches = iter(DataLoader(Noise(is_fault), 8))
    layer = nn.Linear(64, 64)

    def model() -> Tensor:
        batch = next(batches)
        return layer(torch.stack([blur(one) for one in batch]) if is_fault else batch)

    return training(model, list(layer.parameters()))


class Numbers(Dataset[object]):
    """A sample is a tensor, or a list of numbers (the fault)."""

    def __init__(self, is_fault: bool) -> None:
        self.is_fault = is_fault

    def __len__(self) -> int:
        return 1000

    def __getitem__(self, index: int) -> object:
        return [1.0] * 200 if self.is_fault else torch.ones(200)


def collating(is_fault: bool) -> Step:
    batches = iter(DataLoader(Numbers(is_fault), 16))
    layer = nn.Linear(200, 64)

    def model() -> Tensor:
        batch = next(batches)
        return layer(torch.stack(batch, 1).float() if is_fault else batch)

    return training(model, list(layer.parameters()))


PROGRAMS: dict[str, Callable[[bool], Step]] = {
    "IN07": collating,
    "IN08": preparing,
    "HO06": reading,
    "HO07": anomaly,
    "HO09": evaluating,
    "HO10": clipping,
    "HO11": hooking,
    "HO12": zeroed,
    "OP10": cross_entropy,
    "OP11": masking,
    "OP12": embedding,
    "OP13": attention,
    "OP14": recurrent,
    "OP15": float64,
}
LOOK_ALIKES: dict[str, tuple[str, Callable[[], Step]]] = {
    "numbers of Python": ("OP15", scaling_by_numbers),
    "attention pooling": ("OP10", pooling),
    "sines of activations": ("OP11", sines_of_activations),
    "embedding of times": ("OP11", lambda: embedding_of_times(4096)),
    "embedding of as many times as frequencies": ("OP11", lambda: embedding_of_times(128)),
    "mask of lengths": ("OP11", mask_of_lengths),
    "distillation": ("HO09", lambda: distilling(False)),
    "distillation, the teacher first": ("HO09", lambda: distilling(True)),
    "frozen norm": ("HO09", freezing),
    "pieces without code": ("CO04", compiled_without_code),
}
"""Programs without the fault, which a rule once took for it."""
NEED_STACKS = {"IN07", "IN08", "HO08", "HO09", "HO11"}


def codes_of(step: Step, folder: Path, *, with_stack: bool) -> set[str]:
    """Record a few steps, and ask the doctor."""
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=0, warmup=WARM_UP, active=STEPS, repeat=1),
        record_shapes=True,
        with_stack=with_stack,
    ) as recorder:
        for _ in range(WARM_UP + STEPS):
            step()
            recorder.step()
    path = folder / "run.pt.trace.json"
    recorder.export_chrome_trace(str(path))
    return {finding.code for finding in trnscope.open(path).explain().findings}


@pytest.fixture(autouse=True)
def one_thread() -> object:
    before = torch.get_num_threads()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("code", PROGRAMS)
def test_a_program_with_the_fault_is_told_so_and_its_twin_is_not(code: str, tmp_path: Path) -> None:
    with_stack = code in NEED_STACKS
    assert code in codes_of(PROGRAMS[code](True), tmp_path, with_stack=with_stack)
    assert code not in codes_of(PROGRAMS[code](False), tmp_path, with_stack=with_stack)


@pytest.mark.parametrize("make", [mask_of_positions, sines_of_positions])
def test_constants_of_positions_are_found(make: Callable[[], Step], tmp_path: Path) -> None:
    assert "OP11" in codes_of(make(), tmp_path, with_stack=False)


@pytest.mark.parametrize("program", LOOK_ALIKES)
def test_what_only_looks_like_the_fault_is_not_taken_for_it(program: str, tmp_path: Path) -> None:
    code, make = LOOK_ALIKES[program]
    assert code not in codes_of(make(), tmp_path, with_stack=code in NEED_STACKS)


def test_checkpoints_are_found_by_their_frames(tmp_path: Path) -> None:
    assert "HO08" in codes_of(saving(True, tmp_path), tmp_path, with_stack=True)
    assert "HO08" not in codes_of(saving(False, tmp_path), tmp_path, with_stack=True)
