"""Models train to the CPU's numbers, bit by bit."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional

import trnscope.sim

trnscope.sim.activate()

Optimizer = Callable[[list[nn.Parameter]], torch.optim.Optimizer]
Batch = Callable[[torch.Generator], tuple[torch.Tensor, torch.Tensor]]


Norm = Callable[[int], nn.Module]


class OpByOpNorm(nn.Module):
    """RMSNorm of single ops, whose gradients are added in the same order on every device."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight


class Block(nn.Module):
    """A layer of a small Llama."""

    def __init__(self, width: int, heads: int, norm: Norm) -> None:
        super().__init__()
        self.heads = heads
        self.norm1 = norm(width)
        self.norm2 = norm(width)
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.gate = nn.Linear(width, 2 * width, bias=False)
        self.up = nn.Linear(width, 2 * width, bias=False)
        self.down = nn.Linear(2 * width, width, bias=False)

    def attend(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        shape = (batch, length, self.heads, width // self.heads)
        q, k, v = (t.view(shape).transpose(1, 2) for t in self.qkv(x).chunk(3, dim=-1))
        y = functional.scaled_dot_product_attention(rotate(q), rotate(k), v, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(batch, length, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attend(self.norm1(x))
        h = self.norm2(x)
        return x + self.down(functional.silu(self.gate(h)) * self.up(h))


def rotate(x: torch.Tensor) -> torch.Tensor:
    half = x.shape[-1] // 2
    steps = torch.arange(half, device=x.device, dtype=torch.float32)
    angles = torch.outer(
        torch.arange(x.shape[-2], device=x.device, dtype=torch.float32),
        torch.exp(-math.log(10000.0) * steps / half),
    )
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    a, b = x[..., :half], x[..., half:]
    return torch.cat((a * cos - b * sin, a * sin + b * cos), dim=-1)


class Llama(nn.Module):
    def __init__(self, norm: Norm, vocabulary: int = 64, width: int = 32, layers: int = 2) -> None:
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.blocks = nn.ModuleList(Block(width, 4, norm) for _ in range(layers))
        self.norm = norm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.embed(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x)).transpose(1, 2)


class Recurrent(nn.Module):
    def __init__(self, kind: type[nn.LSTM] | type[nn.GRU]) -> None:
        super().__init__()
        self.cells = kind(8, 16, num_layers=2, batch_first=True)
        self.head = nn.Linear(16, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.cells(x)[0][:, -1])


def tokens(generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    ids = torch.randint(0, 64, (4, 17), generator=generator)
    return ids[:, :-1], ids[:, 1:]


def vectors(generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    return (
        torch.randn(16, 32, generator=generator),
        torch.randint(0, 8, (16,), generator=generator),
    )


def images(generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    return (
        torch.randn(4, 3, 16, 16, generator=generator),
        torch.randint(0, 8, (4,), generator=generator),
    )


def sequences(generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    return (
        torch.randn(4, 6, 8, generator=generator),
        torch.randint(0, 4, (4,), generator=generator),
    )


def train(
    make: Callable[[], nn.Module], batch: Batch, optimizer: Optimizer, device: str, steps: int = 10
) -> tuple[list[float], list[torch.Tensor]]:
    torch.manual_seed(0)
    model = make().to(device)
    steps_by = optimizer(list(model.parameters()))
    generator = torch.Generator().manual_seed(1)
    losses = []
    for _ in range(steps):
        inputs, targets = (t.to(device) for t in batch(generator))
        loss = functional.cross_entropy(model(inputs), targets)
        steps_by.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        steps_by.step()
        losses.append(loss.item())
    return losses, [p.detach().cpu() for p in model.parameters()]


def adamw(parameters: list[nn.Parameter]) -> torch.optim.Optimizer:
    return torch.optim.AdamW(parameters, lr=1e-2)


def must_be_equal(make: Callable[[], nn.Module], batch: Batch, optimizer: Optimizer) -> None:
    cpu_losses, cpu_parameters = train(make, batch, optimizer, "cpu")
    losses, parameters = train(make, batch, optimizer, "neuron")
    assert losses == cpu_losses, (losses, cpu_losses)
    assert losses[-1] != losses[0]
    for ours, theirs in zip(parameters, cpu_parameters, strict=True):
        assert torch.equal(ours, theirs)


def mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.LayerNorm(64), nn.Linear(64, 8))


def convolutions() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 8, 3, groups=2),
        nn.GroupNorm(2, 8),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(8, 8),
    )


def check_mlp_with_adamw() -> None:
    must_be_equal(mlp, vectors, adamw)


def check_mlp_with_sgd() -> None:
    must_be_equal(mlp, vectors, lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9))


def check_mlp_with_fused_adam() -> None:
    must_be_equal(mlp, vectors, lambda p: torch.optim.Adam(p, lr=1e-2, fused=True))


def check_mlp_with_foreach_adam() -> None:
    must_be_equal(mlp, vectors, lambda p: torch.optim.Adam(p, lr=1e-2, foreach=True))


def check_llama_with_adamw() -> None:
    must_be_equal(lambda: Llama(OpByOpNorm), tokens, adamw)


def check_llama_with_fused_norms() -> None:
    """A fused norm gives its whole gradient at once, the CPU's two parts: sums round otherwise."""
    (ours, _), (theirs, _) = (
        train(lambda: Llama(nn.RMSNorm), tokens, adamw, device) for device in ("neuron", "cpu")
    )
    assert ours[0] == theirs[0]
    assert all(math.isclose(a, b, rel_tol=1e-6) for a, b in zip(ours, theirs, strict=True))


def check_convolutions() -> None:
    must_be_equal(convolutions, images, adamw)


def check_dropout_draws_the_numbers_of_the_cpu() -> None:
    torch.manual_seed(3)
    on_cpu = functional.dropout(torch.ones(64), 0.3)
    torch.manual_seed(3)
    state = torch.get_rng_state()
    on_device = functional.dropout(torch.ones(64, device="neuron"), 0.3)
    assert torch.equal(on_cpu, on_device.cpu())
    assert torch.equal(state, torch.get_rng_state())


def recurrent_losses(kind: type[nn.LSTM] | type[nn.GRU], device: str) -> torch.Tensor:
    return torch.tensor(train(lambda: Recurrent(kind), sequences, adamw, device)[0])


def check_lstm_and_gru_follow_the_cpu() -> None:
    for kind in (nn.LSTM, nn.GRU):
        ours, theirs = recurrent_losses(kind, "neuron"), recurrent_losses(kind, "cpu")
        torch.testing.assert_close(ours, theirs)


def check_transformer_encoder() -> None:
    def make() -> nn.Module:
        layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True)
        return nn.Sequential(nn.Embedding(64, 32), nn.TransformerEncoder(layer, 2), Head())

    class Head(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(32, 64)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.linear(x).transpose(1, 2)

    must_be_equal(make, tokens, adamw)


def check_autocast_runs_the_ops_that_the_cpus_runs() -> None:
    def run(device: str) -> tuple[torch.Tensor, torch.dtype]:
        torch.manual_seed(0)
        model = mlp().to(device)
        x = torch.randn(16, 32).to(device)
        with torch.autocast(device, dtype=torch.bfloat16):
            y = model(x)
        y.float().sum().backward()
        gradient = next(model.parameters()).grad
        assert gradient is not None
        return gradient.cpu(), y.dtype

    (ours, our_type), (theirs, their_type) = run("neuron"), run("cpu")
    assert our_type == their_type == torch.bfloat16
    torch.testing.assert_close(ours, theirs)


def check_grad_scaler() -> None:
    def run(device: str) -> list[float]:
        torch.manual_seed(0)
        model = mlp().to(device)
        optimizer = adamw(list(model.parameters()))
        scaler = torch.amp.GradScaler(device, init_scale=256.0)
        losses = []
        for _ in range(3):
            loss = model(torch.ones(4, 32, device=device)).square().mean()
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
            losses.append(loss.item())
        return losses

    assert run("neuron") == run("cpu")


def check_checkpoint_draws_the_same_numbers_again() -> None:
    from torch.utils.checkpoint import checkpoint

    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.5)).to("neuron")
    x = torch.randn(4, 8).to("neuron").requires_grad_()
    torch.manual_seed(1)
    model(x).sum().backward()
    assert x.grad is not None
    plain, x.grad = x.grad.cpu(), None
    torch.manual_seed(1)
    checkpoint(model, x, use_reentrant=False).sum().backward()
    assert torch.equal(plain, x.grad.cpu())


def check_rms_norm_and_its_gradients_equal_the_cpus() -> None:
    for dtype in (torch.float32, torch.bfloat16):
        for shape, num_dims in (((64, 96), 1), ((4, 6, 32), 2), ((32,), 1)):
            generator = torch.Generator().manual_seed(0)
            x, grad = (torch.randn(shape, generator=generator).to(dtype) for _ in range(2))
            weight = torch.randn(shape[-num_dims:], generator=generator).to(dtype)
            ours, theirs = (normed(device, x, weight, grad) for device in ("neuron", "cpu"))
            assert all(map(torch.equal, ours, theirs)), (dtype, shape)


def normed(
    device: str, x: torch.Tensor, weight: torch.Tensor, grad: torch.Tensor
) -> list[torch.Tensor]:
    x, weight = (t.to(device).detach().clone().requires_grad_() for t in (x, weight))
    y = torch.rms_norm(x, weight.shape, weight, 1e-6)
    y.backward(grad.to(device))
    plain = torch.rms_norm(x.detach(), weight.shape)
    assert x.grad is not None and weight.grad is not None
    return [t.detach().cpu() for t in (y, plain, x.grad, weight.grad)]


def check_evaluation_where_the_cpu_leaves_results_out() -> None:
    torch.manual_seed(0)
    net, x = convolutions(), torch.randn(2, 3, 16, 16)
    net(x)
    twin = copy.deepcopy(net).to("neuron").eval()
    assert torch.equal(net.eval()(x), twin(x.to("neuron")).cpu())
    bag = nn.EmbeddingBag(10, 4, mode="mean")
    ours, rows = copy.deepcopy(bag).to("neuron"), torch.tensor([[1, 2], [3, 3]])
    bag(rows).sum().backward()
    ours(rows.to("neuron")).sum().backward()
    assert bag.weight.grad is not None and ours.weight.grad is not None
    assert torch.equal(bag.weight.grad, ours.weight.grad.cpu())
