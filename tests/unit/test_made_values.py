"""What shapes tell of which values an op takes."""

from __future__ import annotations

from trnscope.advisor.rules.made_values import MadeValues, OpInputs
from trnscope.advisor.rules.shapes import Dims


def op(name: str, *shapes: Dims | None, types: tuple[str, ...] = ()) -> OpInputs:
    return OpInputs(f"aten::{name}", shapes, types, ())


def ones(dims: str) -> OpInputs:
    return OpInputs("aten::ones", (None,), (), (dims,))


def test_a_row_as_a_column_too_is_one_value_and_any_other_pair_is_two() -> None:
    made = MadeValues()
    made.make(op("arange"))
    assert made.take(op("unsqueeze", (64,), None)) and made.take(op("le", (1, 64), (64, 1)))
    assert not made.take(op("mul", (1, 64), (64, 1)))
    made.make(op("arange"))
    assert made.take(op("mul", (32,), None)) and made.take(op("mul", (64, 1), (32,)))
    assert made.take(op("sin", (64, 32)))


def test_sines_are_of_positions() -> None:
    made = MadeValues()
    made.make(ones("[8, 8]"))
    assert made.take(op("triu", (8, 8), None)) and not made.take(op("sin", (8, 8)))


def test_zeros_have_no_triangle() -> None:
    made = MadeValues()
    made.make(OpInputs("aten::zeros", (None,), (), ("[8, 8]",)))
    assert not made.take(op("tril", (8, 8), None)) and made.take(op("add", (8, 8), None))
    assert made.take(op("tril", (8, 8), None)), "of something else by now"


def test_views_of_another_size_are_taken_once() -> None:
    made = MadeValues()
    made.make(ones("[8, 8]"))
    assert made.take(op("expand", (8, 8), None)) and not made.take(op("triu", (9, 9), None))
    assert made.take(op("triu", (4, 8, 8), None)) and not made.take(op("triu", (2, 8, 8), None))


def test_a_tensor_without_dimensions_may_be_data() -> None:
    made = MadeValues()
    made.make(op("arange"))
    assert made.take(op("mul", (64,), None, types=("float", "double"))), "a number of Python"
    assert not made.take(op("mul", (64,), None, types=("float", "float")))
    assert not made.take(op("le", (64,), None, types=("long int", "long int")))
    assert made.take(op("le", (64,), None, types=("long int", "Scalar")))


def test_without_shapes_nothing_is_taken() -> None:
    made = MadeValues()
    made.make(op("arange"))
    assert not made.take(op("cos"))
    made.make(ones("not dimensions"))
    assert not made.take(op("triu", (8, 8), None))
