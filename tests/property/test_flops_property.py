"""Formulas on arguments that no op would have: a trace may hold anything."""

from __future__ import annotations

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from trnscope.analysis.flops import Uncounted, Work, count, parse_call
from trnscope.analysis.flops.attention import LIBRARY_FORMULAS
from trnscope.analysis.flops.formulas import _FORMULAS

names = st.sampled_from([f"aten::{name}" for name in _FORMULAS] + list(LIBRARY_FORMULAS))
small = st.integers(-3, 12) | st.just(2**63)
shapes = st.lists(small, max_size=5) | st.lists(st.lists(small, max_size=3), max_size=3)
anything = (
    st.none() | st.booleans() | st.text(max_size=3) | st.floats(allow_nan=False) | st.just([])
)
types = st.sampled_from(["float", "c10::BFloat16", "Scalar", "ScalarList", "TensorList", "", "x"])
values = st.sampled_from(["", "True", "False", "[]", "[0]", "[1, 1]", "-7", "2", "0.5", "[true]"])


@settings(max_examples=400, deadline=None)
@given(
    names,
    st.lists(shapes | anything, max_size=12),
    st.lists(types | anything, max_size=12) | st.none(),
    st.lists(shapes | anything, max_size=12) | st.none(),
    st.lists(values, max_size=12) | st.none(),
)
def test_any_arguments_give_an_answer_or_a_reason(
    name: str,
    dims: list[object],
    kinds: list[object] | None,
    strides: list[object] | None,
    texts: list[str] | None,
) -> None:
    given_texts = [None if each is None else json.dumps(each) for each in (kinds, strides, texts)]
    call = parse_call(name, json.dumps(dims), *given_texts)
    assert call is not None
    work = count(call)
    if isinstance(work, Uncounted):
        assert work.reason
        return
    assert isinstance(work, Work)
    assert work.flops is None or work.flops >= 0
    assert work.num_bytes is None or work.num_bytes >= 0


lengths = st.integers(1, 40)


@settings(max_examples=60, deadline=None)
@given(lengths, lengths, lengths, lengths)
def test_a_batch_of_products_is_as_many_products(b: int, m: int, k: int, n: int) -> None:
    def flops(name: str, left: list[int], right: list[int]) -> int | None:
        call = parse_call(name, json.dumps([left, right]), '["float", "float"]', None, None)
        assert call is not None
        work = count(call)
        assert isinstance(work, Work)
        return work.flops

    one = flops("aten::mm", [m, k], [k, n])
    assert flops("aten::bmm", [b, m, k], [b, k, n]) == b * (one or 0)
    assert flops("aten::linear", [b, m, k], [n, k]) == b * (one or 0)
    assert flops("aten::matmul", [b, m, k], [k, n]) == b * (one or 0)
