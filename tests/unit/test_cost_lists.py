"""An op over a list of tensors costs what one tensor of all their elements does."""

from __future__ import annotations

from math import prod

import pytest

from trnscope.sim.cost import CostModel
from trnscope.sim.signature import OpSignature, TensorSpec

MODEL = CostModel.for_instance("trn2.3xlarge", lnc=2)
SIZES = [(4096,), (4096, 4096), (1024, 4096), (8192,)] * 30


@pytest.mark.parametrize(
    ("name", "single", "num_lists"), [("sqrt", "sqrt", 1), ("mul_", "mul", 2), ("lerp_", "lerp", 2)]
)
def test_a_list_costs_as_one_long_tensor(name: str, single: str, num_lists: int) -> None:
    tensors = tuple(TensorSpec(shape, "bfloat16") for shape in SIZES)
    joined = TensorSpec((sum(map(prod, SIZES)),), "bfloat16")
    listed = OpSignature(f"aten::_foreach_{name}", tensors * num_lists, tensors)
    alone = OpSignature(f"aten::{single}", (joined,) * num_lists, (joined,))
    assert MODEL.op(listed).device_ns == pytest.approx(MODEL.op(alone).device_ns, rel=0.1)
