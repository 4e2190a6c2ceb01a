"""OP05: products in full precision on a device with matrix units."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import numpy as np

from trnscope.advisor.context import StepContext
from trnscope.advisor.finding import Confidence
from trnscope.advisor.needs import has_device_of
from trnscope.advisor.removal import DeviceCut, Removal
from trnscope.advisor.rule import Claim, Need, Rule
from trnscope.advisor.words import percent
from trnscope.errors import UnknownHardwareError
from trnscope.hardware.chips import find
from trnscope.model.kinds import DeviceKind, SliceKind
from trnscope.store.tables import U32

_FP32 = re.compile(
    r"(volta|ampere|maxwell|turing|cutlass.*simt)_?.*sgemm|gemmSN_\w+<float|gemmk1_kernel<\w*,?float"
    r"|implicit_convolve_sgemm<float|scudnn|cudnn::detail::(dgrad|wgrad)\w*<float"
    r"|cudnn::cnn::wgrad_alg\w+<float|gemv\w*<\w*,? ?float, float|Cijk_\w*_SB_",
)
_REDUCED = re.compile(r"tf32|bf16|f16f16|h884|s884|i8816|s1688|s16816|tensorop_s", re.IGNORECASE)
_PRODUCTS = re.compile(r"^aten::(mm|addmm|bmm|baddbmm|convolution\w*)$")
_NO_TENSOR = frozenset(("Scalar", "ScalarList", "OptionalTensorList"))
REDUCED_TYPES = ("bfloat16", "float16", "tfloat32")
"""As the hardware data calls them."""
LOW_SHARE, LIKELY_SHARE = 0.25, 0.5
"""Of the products' time: what is left is memory traffic and small shapes. Assumptions of ours; high
follows from the device's peaks."""


class Fp32MatmulRule(Rule):
    """Matrix products run in 32-bit floats on a device that is far quicker with 16 or 19 bits.

    What it finds
    -------------
    Kernels for products and convolutions in plain float32, by their names, on a device whose
    sourced peak for bfloat16, float16 or TF32 is at least twice that for float32. On a NeuronCore
    the programs of such ops, by the recorded types of their inputs.

    Why it costs time
    -----------------
    Matrix units (tensor cores) do not take plain float32: it runs on the ordinary ones, at an
    eighth of the rate or less.

    How it is computed
    ------------------
    The replay runs the steps with half of these kernels' time gone. Low: a quarter. High: all but
    the ratio of the peaks; likely too on a NeuronCore, whose matrix engine makes four passes over
    float32, and half of the bytes go as well.

    When it is wrong
    ----------------
    Small products are limited by memory or launches, not by arithmetic. Where float32 is needed for
    its accuracy, it has to stay.

    Example
    -------
    `volta_sgemm_128x64_nn` on a V100: 15.7 against 125 Tflop/s.

    What to try
    -----------
    `torch.autocast("cuda", dtype=torch.bfloat16)` around the forward pass;
    `torch.set_float32_matmul_precision("high")` for TF32 (Ampere and later).

    References
    ----------
    torch_tb_profiler's tensor-core rule; peaks: trnscope's hardware data.
    """

    code = "OP05"
    name = "fp32-matmul"
    subject = "matrix products in float32"
    needs = (Need.DEVICE_WORK,)
    specificity = 2

    def check(self, context: StepContext) -> Iterator[Claim]:
        """One claim over all such kernels of the window."""
        kernels = np.union1d(_by_name(context), _by_type(context)).astype(np.uint32)
        ratio = _peak_ratio(context) if kernels.size else None
        if ratio is None or ratio < 2.0:
            return
        everything = Removal((), (DeviceCut(kernels),))
        at_most = 1.0 - 1.0 / ratio
        likely = at_most if has_device_of(context.trace, DeviceKind.NEURON) else LIKELY_SHARE
        yield Claim(
            title="Matrix products run in float32, without the device's matrix units",
            evidence=kernels,
            likely=everything.scaled(likely),
            low=everything.scaled(LOW_SHARE),
            high=everything.scaled(at_most),
            confidence=Confidence.MEDIUM,
            tries=(
                'run forward and loss under torch.autocast("cuda", dtype=torch.bfloat16) '
                "(float16 with a GradScaler before Ampere)",
                'torch.set_float32_matmul_precision("high") on Ampere and later',
            ),
            how=f"the steps replayed with {percent(likely)} of these kernels' time gone; "
            f"the device's peaks differ {ratio:.1f} times",
        )


def _by_name(context: StepContext) -> U32:
    """Kernels whose names say that they compute in plain float32."""
    kernels = context.device(SliceKind.KERNEL, pattern=_FP32)
    names = context.names(kernels)
    return kernels[[i for i, name in enumerate(names) if not _REDUCED.search(name)]]


def _by_type(context: StepContext) -> U32:
    """Work of a NeuronCore that ops on float32 launched."""
    types = context.trace.attribute("input_types")
    if types is None or not has_device_of(context.trace, DeviceKind.NEURON):
        return np.empty(0, np.uint32)
    ops = context.ops(_PRODUCTS)
    has, text = types.of(ops)
    plain = {one for one in np.unique(text[has]).tolist() if _is_plain(context.trace.strings[one])}
    return context.launched_in(ops[has & np.isin(text, list(plain))])


def _is_plain(types: str) -> bool:
    """Whether all tensors among some inputs are float32."""
    names = [name for name in json.loads(types) if name and name not in _NO_TENSOR]
    return bool(names) and set(names) == {"float"}


def _peak_ratio(context: StepContext) -> float | None:
    """Best peak of reduced precision over that of float32; absent for unknown hardware."""
    for track in context.trace.tracks:
        if track.device is None or track.device.name is None:
            continue
        try:
            chip = find(track.device.name)
        except UnknownHardwareError:
            continue
        plain = chip.peak("float32")
        reduced = [peak.value for dtype in REDUCED_TYPES if (peak := chip.peak(dtype))]
        if plain is not None and reduced:
            return max(reduced) / plain.value
    return None
