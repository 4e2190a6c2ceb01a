"""FLOPs of real runs equal torch's own counters: FlopCounterMode and ``with_flops``.

Where ours differ on purpose, the difference itself is asserted: causal attention counts the
pairs that are not masked, torch's counter all of them.
"""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

import trnscope
from trnscope.analysis.flops import attention, convolution
from trnscope.analysis.roofline import Roofline

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402
from torch.nn.attention import SDPBackend, sdpa_kernel  # noqa: E402
from torch.profiler import ProfilerActivity, profile  # noqa: E402
from torch.utils.flop_counter import FlopCounterMode  # noqa: E402

Run = Callable[[], object]


def by_trnscope(run: Run, path: Path) -> Roofline:
    """What trnscope counts in a recording of the run."""
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True, with_flops=True) as prof:
        run()
    prof.export_chrome_trace(str(path))
    return trnscope.open(path).roofline()


def by_torch(run: Run) -> Counter[str]:
    """What FlopCounterMode counts, by op."""
    with FlopCounterMode(display=False) as counter:
        run()
    total = Counter[str]()
    for packet, flops in counter.get_flop_counts().get("Global", {}).items():
        total[str(packet).replace(".", "::", 1)] += flops
    return total


def matrix_flops(result: Roofline) -> Counter[str]:
    total = Counter[str]()
    for row in result.rows:
        if row.is_matrix:
            total[row.name] += row.flops or 0
    return total


class Block(nn.Module):
    """Convolutions, products and norms as models use them."""

    def __init__(self) -> None:
        super().__init__()
        self.image = nn.Sequential(
            nn.Conv2d(3, 8, 3, stride=2, padding=1, dilation=2),
            nn.BatchNorm2d(8),
            nn.ReLU(),
            nn.ConvTranspose2d(8, 4, 3, stride=2),
            nn.AdaptiveAvgPool2d(4),
            nn.Flatten(),
            nn.Linear(64, 32),
        )
        self.text = nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 32), nn.LayerNorm(32))

    def forward(self, image: torch.Tensor, text: torch.Tensor) -> torch.Tensor:
        joined = torch.einsum("bsd,bd->bs", self.text(text), self.image(image))
        return joined.softmax(-1).square().mean()


def training_step() -> Run:
    torch.manual_seed(0)
    model = Block()
    optimizer = torch.optim.AdamW(model.parameters())
    image, text = torch.randn(2, 3, 16, 16), torch.randn(2, 5, 32)

    def run() -> None:
        optimizer.zero_grad()
        model(image, text).backward()
        optimizer.step()

    return run


@pytest.mark.slow
def test_a_training_step_counts_as_flop_counter_mode_does(tmp_path: Path) -> None:
    run = training_step()
    run()
    result = by_trnscope(run, tmp_path / "trace.json")
    assert matrix_flops(result) == by_torch(run)
    assert result.matrix_flops > 0


def products() -> None:
    a, b, v = torch.randn(6, 5), torch.randn(5, 7), torch.randn(5)
    torch.mm(a, b)
    torch.addmm(torch.randn(7), a, b)
    torch.bmm(torch.randn(3, 6, 5), torch.randn(3, 5, 7))
    torch.baddbmm(torch.randn(3, 6, 7), torch.randn(3, 6, 5), torch.randn(3, 5, 7))
    torch.matmul(torch.randn(2, 3, 6, 5), torch.randn(3, 5, 7))
    torch.matmul(a, v)
    functional.linear(torch.randn(4, 3, 5), torch.randn(9, 5), torch.randn(9))


def test_products_count_as_flop_counter_mode_does(tmp_path: Path) -> None:
    ours, theirs = matrix_flops(by_trnscope(products, tmp_path / "t.json")), by_torch(products)
    # The counter knows no matrix by vector.
    assert ours.pop("aten::mv", 0) + ours.pop("aten::addmv", 0) == 2 * 6 * 5
    assert ours == theirs


def kernel_and_flops() -> list[tuple[str, Run]]:
    x = torch.randn(2, 6, 9, 9)
    return [
        ("groups", lambda: functional.conv2d(x, torch.randn(4, 3, 3, 3), groups=2)),
        ("depthwise", lambda: functional.conv2d(x, torch.randn(6, 1, 3, 3), groups=6)),
        ("line", lambda: functional.conv1d(torch.randn(2, 6, 20), torch.randn(4, 6, 5), stride=3)),
        (
            "three",
            lambda: functional.conv3d(torch.randn(1, 2, 5, 6, 7), torch.randn(3, 2, 2, 2, 2)),
        ),
        ("transposed", lambda: functional.conv_transpose2d(x, torch.randn(6, 5, 3, 3), stride=2)),
        ("same", lambda: functional.conv2d(x, torch.randn(4, 6, 3, 3), padding="same")),
        ("without batch", lambda: functional.conv2d(x[0], torch.randn(4, 6, 3, 3))),
    ]


@pytest.mark.parametrize(("name", "run"), kernel_and_flops(), ids=lambda each: str(each)[:14])
def test_convolutions_count_as_flop_counter_mode_does(name: str, run: Run, tmp_path: Path) -> None:
    assert matrix_flops(by_trnscope(run, tmp_path / "t.json")) == by_torch(run)


@pytest.mark.parametrize("causal", [False, True])
def test_fused_attention(tmp_path: Path, causal: bool) -> None:
    """Forward as the counter, and forward plus backward in the ratio of 2 to 5 products."""
    q, k, v = (torch.randn(2, 4, 16, 8, requires_grad=True) for _ in range(3))

    def run() -> None:
        with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
            out = functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
        out.sum().backward()

    ours = matrix_flops(by_trnscope(run, tmp_path / "t.json"))
    forward = ours["aten::_scaled_dot_product_flash_attention_for_cpu"]
    backward = ours["aten::_scaled_dot_product_flash_attention_for_cpu_backward"]
    pairs = attention.num_pairs(16, 16, causal=causal)
    assert forward == 2 * 2 * 4 * pairs * (8 + 8)
    assert 2 * backward == 5 * forward
    theirs = torch.utils.flop_counter.sdpa_flop_count(q.shape, k.shape, v.shape)
    assert forward * 16 * 16 == theirs * pairs


def test_attention_by_products_counts_as_flop_counter_mode_does(tmp_path: Path) -> None:
    q, k, v = (torch.randn(2, 4, 16, 8) for _ in range(3))

    def run() -> None:
        with sdpa_kernel(SDPBackend.MATH):
            functional.scaled_dot_product_attention(q, k, v)

    ours = matrix_flops(by_trnscope(run, tmp_path / "t.json"))
    assert sum(ours.values()) == sum(by_torch(run).values()) == 2 * 2 * (2 * 4 * 256) * 8


def test_ops_count_as_with_flops_does(tmp_path: Path) -> None:
    """torch writes ``flops`` beside an op: products, additions and multiplications."""

    def run() -> None:
        products()
        a = torch.randn(6, 5)
        (a + torch.randn(5)) * torch.randn(6, 5)
        a.mul(2.0).add(1.0)

    path = tmp_path / "trace.json"
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True, with_flops=True) as prof:
        run()
    prof.export_chrome_trace(str(path))
    theirs = Counter[str]()
    for event in prof.events():
        theirs[event.name] += event.flops or 0
    ours = Counter[str]()
    for row in trnscope.open(path).roofline().rows:
        if row.name in theirs:
            ours[row.name] += row.flops or 0
    compared = ("mm", "addmm", "bmm", "baddbmm", "add", "mul")
    for name in (f"aten::{each}" for each in compared):
        assert ours[name] == theirs[name] > 0


# Where the arguments stand -----------------------------------------------------------------


def arguments_of(name: str) -> list[str]:
    """Names of an op's arguments, by torch's own schema."""
    for schema in torch._C._jit_get_schemas_for_operator(f"aten::{name}"):
        if not schema.overload_name:
            return [argument.name for argument in schema.arguments]
    raise AssertionError(f"torch knows no {name}")


@pytest.mark.parametrize("name", attention.LAYOUTS)
def test_attention_reads_its_arguments_where_torch_puts_them(name: str) -> None:
    layout, names = attention.LAYOUTS[name], arguments_of(name)
    assert names[layout.query : layout.query + 3] == ["query", "key", "value"]
    assert names[layout.causal] in ("is_causal", "custom_mask_type")
    if layout.bias is not None:
        assert names[layout.bias] in ("bias", "attn_bias", "attn_mask")
    if layout.lengths is not None:
        assert re.fullmatch("cum_seq_q|cu_seqlens_q", names[layout.lengths])
    if layout.window is not None:
        assert names[layout.window] in ("window_size_left", "window_size")
    if layout.out is not None:
        assert names[layout.out] == "out"
        assert names[0].startswith("grad_out")


def test_convolutions_read_their_arguments_where_torch_puts_them() -> None:
    names = arguments_of("convolution")
    assert [names.index(each) for each in ("stride", "padding", "dilation")] == [3, 4, 5]
    assert [names.index(each) for each in ("transposed", "output_padding", "groups")] == [6, 7, 8]
    for name in ("convolution_backward", "convolution_backward_overrideable"):
        names = arguments_of(name)
        assert names.index("transposed") == names.index("output_mask") - 3
    assert set(convolution.FORMULAS) >= {"convolution", "convolution_backward"}


def test_every_formula_is_of_an_op_that_torch_has() -> None:
    """A misspelt name would never be counted."""
    from trnscope.analysis.flops.formulas import _FORMULAS

    unknown = {name for name in _FORMULAS if not _exists(name)}
    # One function serves the lists of every element-wise op; torch has not all of them.
    assert {name for name in unknown if not name.startswith("_foreach_")} == set()


def _exists(name: str) -> bool:
    for spelling in (name, f"{name}_"):
        with contextlib.suppress(RuntimeError):
            if torch._C._jit_get_schemas_for_operator(f"aten::{spelling}"):
                return True
    return False
