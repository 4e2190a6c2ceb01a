"""FLOPs and bytes of single ops, computed by hand."""

from __future__ import annotations

import json
from typing import Any

import pytest

from trnscope.analysis.flops import Uncounted, Work, count, has_formula, parse_call

BF16, F32, I64 = "c10::BFloat16", "float", "long int"


def op(
    name: str,
    *arguments: tuple[Any, str] | str | int | bool | float | list[int] | list[bool] | None,
    strides: list[Any] | None = None,
    concrete: bool = True,
) -> Work | Uncounted:
    """Count an op whose tensors are (shape, type) and whose other arguments are values."""
    dims: list[Any] = []
    types: list[str] = []
    values: list[str] = []
    for argument in arguments:
        is_tensor = isinstance(argument, tuple)
        dims.append(argument[0] if isinstance(argument, tuple) else [])
        types.append(argument[1] if isinstance(argument, tuple) else _type(argument))
        values.append("" if is_tensor or argument is None else str(argument))
    call = parse_call(
        name if "::" in name else f"aten::{name}",
        json.dumps(dims),
        json.dumps(types),
        None if strides is None else json.dumps(strides),
        json.dumps(values) if concrete else None,
    )
    assert call is not None
    return count(call)


def _type(value: object) -> str:
    if value is None:
        return ""
    return "ScalarList" if isinstance(value, list) else "Scalar"


def counted(work: Work | Uncounted) -> tuple[int | None, int | None, int | None]:
    """(FLOPs, bytes read, bytes written)."""
    assert isinstance(work, Work), work
    return work.flops, work.read_bytes, work.write_bytes


# Matrix products ---------------------------------------------------------------------------


def test_matrix_products() -> None:
    m, k, n = 4, 8, 16
    product = 2 * m * k * n
    read, written = 2 * (m * k + k * n), 2 * m * n
    a, b = ([m, k], BF16), ([k, n], BF16)
    assert counted(op("mm", a, b)) == (product, read, written)
    # The result of an ``out=`` call is listed as an input; it is not read.
    assert counted(op("mm", a, b, ([m, n], BF16))) == (product, read, written)
    stacked = op("bmm", ([3, m, k], BF16), ([3, k, n], BF16))
    assert counted(stacked) == (3 * product, 3 * read, 3 * written)
    assert counted(op("mv", a, ([k], BF16))) == (2 * m * k, 2 * (m * k + k), 2 * m)
    assert counted(op("dot", ([k], F32), ([k], F32))) == (2 * k, 4 * 2 * k, 4)
    added = op("addmm", ([n], BF16), a, b, 1, 1)
    assert counted(added) == (product, read + 2 * n, written)
    assert counted(op("addmm", ([n], BF16), a, b, 0, 1)) == (product, read, written)
    summed = op("addbmm", ([m, n], BF16), ([3, m, k], BF16), ([3, k, n], BF16), 1, 1)
    assert counted(summed) == (3 * product, 3 * read + 2 * m * n, written)


def test_wrappers_of_matrix_products() -> None:
    linear = op("linear", ([2, 5, 8], F32), ([16, 8], F32), ([16], F32))
    assert counted(linear) == (2 * 10 * 8 * 16, 4 * (80 + 128 + 16), 4 * 160)
    broadcast = op("matmul", ([2, 1, 4, 8], F32), ([3, 8, 5], F32))
    assert counted(broadcast)[0] == 2 * (2 * 3) * 4 * 8 * 5


def test_products_of_narrow_types() -> None:
    fp8, scale = "c10::Float8_e4m3fn", ([], F32)
    work = op("_scaled_mm", ([4, 8], fp8), ([8, 16], fp8), scale, scale, None, None, 15, False)
    assert counted(work) == (2 * 4 * 8 * 16, 32 + 128 + 8, 2 * 64)
    assert isinstance(work, Work)
    assert work.dtype == "float8_e4m3fn"
    whole = op("_int_mm", ([4, 8], "signed char"), ([8, 16], "signed char"))
    assert counted(whole) == (2 * 4 * 8 * 16, 32 + 128, 4 * 64)


def test_a_grouped_product_sends_each_row_to_one_matrix() -> None:
    work = op("_grouped_mm", ([10, 8], BF16), ([3, 8, 16], BF16), ([3], "int"), None, None)
    assert counted(work)[0] == 2 * 10 * 8 * 16
    ragged = op("_grouped_mm", ([4, 10], BF16), ([10, 16], BF16), ([3], "int"), None, None)
    assert isinstance(ragged, Uncounted)


def test_an_expanded_input_is_read_once() -> None:
    shape = [64, 32, 16]
    expanded = op("bmm", (shape, F32), ([64, 16, 8], F32), strides=[[0, 16, 1], [128, 8, 1]])
    assert counted(expanded)[1] == 4 * (32 * 16 + 64 * 16 * 8)


def test_shapes_that_do_not_multiply_are_not_counted() -> None:
    assert isinstance(op("mm", ([4, 8], F32), ([7, 16], F32)), Uncounted)


# Convolutions ------------------------------------------------------------------------------


def convolution(
    source: list[int], weight: list[int], **over: Any
) -> tuple[int | None, int | None, int | None]:
    given = {"stride": [1, 1], "padding": [0, 0], "dilation": [1, 1], "groups": 1} | over
    return counted(
        op(
            "convolution",
            (source, F32),
            (weight, F32),
            None,
            given["stride"],
            given["padding"],
            given["dilation"],
            given.get("transposed", False),
            given.get("extra", [0, 0]),
            given["groups"],
        )
    )


def test_convolutions() -> None:
    source, weight = [2, 3, 10, 10], [8, 3, 3, 3]
    read = 4 * (2 * 3 * 100 + 8 * 27)
    assert convolution(source, weight) == (2 * 2 * 64 * 8 * 27, read, 4 * 2 * 8 * 64)
    assert convolution(source, weight, padding=[1, 1])[0] == 2 * 2 * 100 * 8 * 27
    # (10 + 2 - 2 * 2 - 1) // 2 + 1 = 4 positions a side.
    strided = convolution(source, weight, stride=[2, 2], padding=[1, 1], dilation=[2, 2])
    assert strided == (2 * 2 * 16 * 8 * 27, read, 4 * 2 * 8 * 16)
    one_number = convolution(source, weight, stride=[2], padding=[1], dilation=[2], extra=[0])
    assert one_number == strided
    depthwise = convolution([1, 8, 6, 6], [8, 1, 3, 3], groups=8)
    assert depthwise[0] == 2 * 16 * 8 * 9


def test_a_transposed_convolution_visits_each_input() -> None:
    flops, _, written = convolution([2, 4, 5, 5], [4, 6, 3, 3], stride=[2, 2], transposed=True)
    assert flops == 2 * 2 * 25 * (4 * 6 * 9)
    assert written == 4 * 2 * 6 * 11 * 11


@pytest.mark.parametrize(("mask", "times"), [([True, True, True], 2), ([False, True, False], 1)])
def test_gradients_of_a_convolution(mask: list[bool], times: int) -> None:
    grad, source, weight = [2, 8, 8, 8], [2, 3, 10, 10], [8, 3, 3, 3]
    work = op(
        "convolution_backward",
        (grad, F32),
        (source, F32),
        (weight, F32),
        [8],
        [1, 1],
        [0, 0],
        [1, 1],
        False,
        [0, 0],
        1,
        mask,
    )
    flops, read, written = counted(work)
    assert flops == times * 2 * 2 * 64 * 8 * 27
    grad_bytes, source_bytes, weight_bytes = 4 * 1024, 4 * 600, 4 * 216
    assert read == grad_bytes + source_bytes + (weight_bytes if mask[0] else 0)
    assert written == weight_bytes + (source_bytes if mask[0] else 0)


def test_a_convolution_without_its_strides_is_not_counted() -> None:
    work = op(
        "convolution",
        ([2, 3, 10, 10], F32),
        ([8, 3, 3, 3], F32),
        None,
        [1, 1],
        concrete=False,
    )
    assert isinstance(work, Uncounted)
    assert "not recorded" in work.reason


# Attention ---------------------------------------------------------------------------------

HEADS = [2, 4, 16, 8]
"""[batch, heads, sequence, head size]"""


def attention(*, causal: bool, keys: int = 16) -> tuple[int | None, int | None, int | None]:
    tensors = [(HEADS, BF16), ([2, 4, keys, 8], BF16), ([2, 4, keys, 8], BF16)]
    return counted(op("_scaled_dot_product_flash_attention", *tensors, 0.0, causal, False, None))


def test_attention_forward() -> None:
    pairs = 2 * 4 * 16 * 16
    assert attention(causal=False) == (2 * pairs * 16, 3 * 2 * 1024, 2 * 1024)


@pytest.mark.parametrize(
    ("keys", "pairs"),
    # A query sees the keys up to its own place, and no more than there are.
    [(16, 16 * 17 // 2), (4, 4 * 5 // 2 + 12 * 4), (20, 16 * 17 // 2)],
)
def test_causal_attention_counts_what_is_not_masked(keys: int, pairs: int) -> None:
    assert attention(causal=True, keys=keys)[0] == 2 * (2 * 4 * pairs) * 16


def test_attention_backward_makes_the_scores_again() -> None:
    heads = (HEADS, BF16)
    work = op(
        "_scaled_dot_product_flash_attention_backward",
        *[heads] * 5,
        ([2, 4, 16], F32),
        None,
        None,
        16,
        16,
        0.0,
        False,
        ([], I64),
        ([], I64),
        None,
    )
    assert counted(work) == (2 * (2 * 4 * 256) * 5 * 8, 5 * 2048, 3 * 2048)


def test_heads_of_keys_may_serve_several_of_queries() -> None:
    few = ([2, 16, 1, 8], BF16)
    work = op("_flash_attention_forward", ([2, 16, 4, 8], BF16), few, few, *_flash_rest(None))
    assert counted(work) == (2 * (2 * 4 * 256) * 16, 2 * (1024 + 2 * 256), 2 * 1024)


def test_flash_attention_of_the_package() -> None:
    """``[b, s, h, d]``; causal counts from the end: the last query sees every key."""
    q, kv = ([2, 4, 3, 8], BF16), ([2, 10, 3, 8], BF16)
    rest = [0.0, 0.35, True, -1, -1, 0.0, None, False]
    work = op("flash_attn::_flash_attn_forward", q, kv, kv, *rest)
    pairs = 2 * 3 * (7 + 8 + 9 + 10)
    assert counted(work)[0] == 2 * pairs * 16
    lse = ([2, 3, 4], F32)
    grads = (q, kv, kv)
    back = op("flash_attn::_flash_attn_backward", q, q, kv, kv, q, lse, *grads, *rest)
    assert counted(back)[0] == 5 * pairs * 16
    rest[3] = 2
    windowed = op("flash_attn::_flash_attn_forward", q, kv, kv, *rest)
    assert windowed == Uncounted("a window limits what each query sees")


def test_packed_sequences_of_unknown_length_are_not_counted() -> None:
    packed = ([32, 4, 8], BF16)
    lengths = ([3], "int")
    work = op("_flash_attention_forward", packed, packed, packed, *_flash_rest(lengths))
    assert isinstance(work, Uncounted)


def _flash_rest(lengths: tuple[list[int], str] | None) -> list[Any]:
    return [lengths, lengths, 16, 16, 0.0, False, False]


# The rest ----------------------------------------------------------------------------------


def test_normalisation() -> None:
    size, width = 32 * 64, 64
    x, w = ([32, 64], BF16), ([64], BF16)
    assert counted(op("native_layer_norm", x, [64], w, w, 1e-5)) == (
        8 * size,
        2 * (size + 2 * width),
        2 * size,
    )
    assert counted(op("native_layer_norm", x, [64], None, None, 1e-5))[0] == 6 * size
    assert counted(op("_fused_rms_norm", x, [64], w, 1e-5)) == (
        4 * size,
        2 * (size + width),
        2 * size,
    )
    c = ([64], F32)
    training = op("native_batch_norm", ([32, 64], F32), c, c, c, c, True, 0.1, 1e-5)
    running = op("native_batch_norm", ([32, 64], F32), c, c, c, c, False, 0.1, 1e-5)
    assert counted(training)[0] == 8 * size
    assert counted(running) == (4 * size, 4 * (size + 4 * width), 4 * size)


def test_softmax() -> None:
    x = ([8, 100], F32)
    assert counted(op("_softmax", x, 1, False)) == (5 * 800, 3200, 3200)
    assert counted(op("_softmax_backward_data", x, x, 1, 6)) == (4 * 800, 6400, 3200)


def test_element_wise_ops() -> None:
    x, y = ([8, 100], BF16), ([100], BF16)
    assert counted(op("add", x, y, 1)) == (800, 2 * 900, 1600)
    assert counted(op("mul_", x, ([], "double"))) == (800, 1600 + 8, 1600)
    assert counted(op("silu", x)) == (5 * 800, 1600, 1600)
    assert counted(op("gelu", x, "none"))[0] == 5 * 800
    assert counted(op("gelu", x, "tanh"))[0] == 9 * 800
    assert counted(op("eq", x, x)) == (800, 3200, 800)
    assert counted(op("where", ([8, 100], "bool"), x, x)) == (0, 800 + 3200, 1600)
    assert counted(op("addcmul", x, x, x, 1)) == (2400, 4800, 1600)
    mixed = op("add", x, ([8, 100], F32), 1)
    assert counted(mixed) == (800, 1600 + 3200, 3200)
    assert isinstance(mixed, Work)
    assert mixed.dtype == "float32"


def test_whole_numbers_make_no_flops() -> None:
    x = ([8, 100], I64)
    assert counted(op("add", x, x, 1)) == (0, 12_800, 6_400)
    assert counted(op("sum", x, [1], False, None)) == (0, 6_400, 64)


def test_reductions() -> None:
    x = ([8, 100], F32)
    assert counted(op("sum", x, [1], False, None)) == (800, 3200, 32)
    assert counted(op("mean", x, [-1], True, None)) == (800, 3200, 32)
    assert counted(op("sum", x, None)) == (800, 3200, 4)
    assert counted(op("max", x, 1, False)) == (800, 3200, 32 + 64)
    assert counted(op("max", x, x)) == (800, 6400, 3200)
    assert counted(op("linalg_vector_norm", x, 2, [0, 1], False, None)) == (1600, 3200, 4)
    assert counted(op("argmax", x, 1, False)) == (800, 3200, 64)


def test_pooling() -> None:
    x = ([2, 3, 8, 8], F32)
    pooled = 2 * 3 * 16
    work = op("max_pool2d_with_indices", x, [2, 2], [2, 2], [0, 0], [1, 1], False)
    assert counted(work) == (4 * pooled, 4 * 384, 12 * pooled)
    # (8 + 2 - 3) / 2 is 3.5: four windows a side, five when rounded up.
    up = op("max_pool2d_with_indices", x, [3, 3], [2, 2], [1, 1], [1, 1], True)
    assert counted(up)[2] == 12 * (2 * 3 * 25)
    assert counted(op("_adaptive_avg_pool2d", x, [1, 1])) == (384 + 6, 4 * 384, 24)


def test_look_ups() -> None:
    table, index = ([1000, 64], BF16), ([8, 16], I64)
    size = 8 * 16 * 64
    assert counted(op("embedding", table, index, -1, False, False)) == (
        0,
        2 * size + 8 * 128,
        2 * size,
    )
    # No more is read than the table holds.
    small = op("embedding", ([10, 64], BF16), index, -1, False, False)
    assert counted(small)[1] == 2 * 640 + 8 * 128
    grad = ([8, 16, 64], BF16)
    assert counted(op("embedding_dense_backward", grad, index, 1000, -1, False)) == (
        size,
        2 * size + 8 * 128,
        2 * 64_000,
    )
    assert counted(op("gather", table, 1, ([1000, 4], I64), False)) == (
        0,
        2 * 4000 + 8 * 4000,
        2 * 4000,
    )


def test_copies() -> None:
    x, y = ([8, 100], BF16), ([8, 100], F32)
    assert counted(op("copy_", x, y, False)) == (0, 3200, 1600)
    assert counted(op("zero_", y)) == (0, 0, 3200)
    assert counted(op("constant_pad_nd", x, [1, 2], 0)) == (0, 1600, 2 * 8 * 103)


def test_lists_of_tensors_have_flops_but_no_types() -> None:
    params = ([[10, 10], [7]], "TensorList")
    assert counted(op("_foreach_mul_", params, 0.9)) == (107, None, None)
    assert counted(op("_fused_adamw_", params, params, params, params)) == (14 * 107, None, None)
    joined = op("cat", ([[4, 8], [2, 8]], "TensorList"), 0)
    assert counted(joined) == (0, None, None)


def test_random_numbers_have_bytes_but_no_flops() -> None:
    assert counted(op("normal_", ([8, 100], F32), 0.0, 1.0, None)) == (None, 0, 3200)


def test_without_types_flops_stay_and_bytes_are_unknown() -> None:
    call = parse_call("aten::mm", "[[4, 8], [8, 16]]", None, None, None)
    assert call is not None
    assert counted(count(call)) == (1024, None, None)


@pytest.mark.parametrize("name", ["aten::view", "aten::conv2d", "vllm::moe", "triton_poi_1", ""])
def test_what_has_no_formula_is_unknown_not_zero(name: str) -> None:
    call = parse_call(name, "[[4, 8]]", '["float"]', None, None)
    assert call is not None
    assert isinstance(count(call), Uncounted)
    assert not has_formula(name)


def test_complex_products_are_unknown() -> None:
    kind = "c10::complex<float>"
    assert isinstance(op("mm", ([4, 8], kind), ([8, 16], kind)), Uncounted)


@pytest.mark.parametrize("dims", ["", "{}", "[[1, 2", "7", "null"])
def test_arguments_that_make_no_sense_are_no_call(dims: str) -> None:
    assert parse_call("aten::mm", dims, None, None, None) is None


@pytest.mark.parametrize("dims", ['[["a"], [2.5, 1]]', "[[[1]], 3]", "[[], []]", "[]"])
def test_strange_shapes_are_not_counted(dims: str) -> None:
    call = parse_call("aten::mm", dims, '["float", "float"]', "[[1]]", "{}")
    assert call is not None
    assert isinstance(count(call), Uncounted)
