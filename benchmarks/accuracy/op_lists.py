"""Lists of ATen ops as text, and the graphs that they make.

One op a line: ``out = bmm(q, k) : B*H, S, S bfloat16``. Values that no line makes are inputs and
are declared: ``q : B, S, D bfloat16``. A result may be marked ``@t`` (its last two dimensions are
swapped in memory), ``@h`` (the two before the last are) or ``@e`` (expanded: the last dimension has
stride 0). Several results: ``a, b = topk(x) : 4, 2 float32 ; 4, 2 int64``. Arguments that are no
tensors follow the call in braces: ``{is_causal=1}``. An input whose name starts with ``$`` is the
same value in every section and repetition; one with ``%`` is a constant of a compiled graph.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from benchmarks.accuracy.expressions import Sizes, evaluate, whole
from trnscope.sim.cost.engines import FP8
from trnscope.sim.cost.program import ITEM_BYTES
from trnscope.sim.signature import GraphNode, GraphSpec, OpSignature, TensorSpec

CALL = re.compile(r"^(?P<op>[\w:]+)\((?P<inputs>[^)]*)\)\s*(\{(?P<attributes>[^}]*)\})?$")
KNOWN_TYPES = {*ITEM_BYTES, *FP8, "int8", "uint8", "bool"}
TYPES = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32", "fp8": "float8_e4m3fn"}


class OpListError(ValueError):
    """A line that cannot be read."""


@dataclass(frozen=True)
class Line:
    """One op with the names of what it reads and makes."""

    op: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    specs: tuple[TensorSpec, ...]
    attributes: tuple[tuple[str, int | float], ...]


@dataclass(frozen=True)
class OpList:
    """Ops in order and the inputs that they need."""

    lines: tuple[Line, ...]
    inputs: Mapping[str, TensorSpec]


def parse(text: str, sizes: Sizes, dtype: str) -> OpList:
    """Reads a list; ``dtype`` stands for the type named ``T``."""
    lines: list[Line] = []
    inputs: dict[str, TensorSpec] = {}
    for raw in text.splitlines():
        line = raw.split("#")[0].strip()
        if not line:
            continue
        head, _, tail = line.partition(":") if "=" not in line else _split(line)
        specs = tuple(_spec(part, sizes, dtype) for part in tail.split(";"))
        if "=" in head:
            lines.append(_line(head, specs))
        else:
            inputs[head.strip()] = specs[0]
    return OpList(tuple(lines), inputs)


def _split(line: str) -> tuple[str, str, str]:
    head, separator, tail = line.rpartition(" : ")
    if not separator:
        raise OpListError(f"no ' : ' with a result's shape in {line!r}")
    return head, separator, tail


def _line(head: str, specs: tuple[TensorSpec, ...]) -> Line:
    results, _, call = head.partition("=")
    match = CALL.match(call.strip())
    if match is None:
        raise OpListError(f"not a call: {call.strip()!r}")
    attributes = []
    for pair in (match["attributes"] or "").split(","):
        if pair.strip():
            key, _, value = pair.partition("=")
            attributes.append((key.strip(), evaluate(value, {})))
    inputs = tuple(name.strip() for name in match["inputs"].split(",") if name.strip())
    outputs = tuple(name.strip() for name in results.split(","))
    return Line(match["op"], inputs, outputs, specs, tuple(attributes))


def _spec(text: str, sizes: Sizes, dtype: str) -> TensorSpec:
    text, _, mark = text.strip().partition("@")
    shape_text, _, type_text = text.strip().rpartition(" ")
    shape = tuple(whole(part, sizes) for part in _dimensions(shape_text))
    named = dtype if type_text == "T" else type_text
    named = TYPES.get(named, named)
    if named not in KNOWN_TYPES:
        raise OpListError(f"no type {named!r} in {text.strip()!r}")
    if min(shape, default=0) < 0:
        raise OpListError(f"a negative dimension in {text.strip()!r}")
    return TensorSpec(shape, named, _strides(shape, mark.strip()))


def _dimensions(text: str) -> list[str]:
    """Split at the commas outside of brackets."""
    parts, depth, current = [], 0, ""
    for letter in text:
        depth += (letter == "(") - (letter == ")")
        if letter == "," and depth == 0:
            parts.append(current)
            current = ""
        else:
            current += letter
    return [part for part in [*parts, current] if part.strip()]


def _strides(shape: tuple[int, ...], mark: str) -> tuple[int, ...] | None:
    if not mark:
        return None
    order = list(range(len(shape)))
    axes = {"t": 2, "h": 3, "e": 1}
    if axes.get(mark, len(shape) + 1) > len(shape):
        raise OpListError(f"no layout @{mark} for a tensor of {len(shape)} dimensions")
    first = -axes[mark]
    if mark != "e":
        order[first], order[first + 1] = order[first + 1], order[first]
    strides, step = [0] * len(shape), 1
    for dimension in reversed(order):
        strides[dimension] = step
        step *= shape[dimension]
    if mark == "e":
        strides[-1] = 0
    return tuple(strides)


def signatures(ops: OpList) -> list[OpSignature]:
    """The ops as the cost model takes them."""
    known = dict(ops.inputs)
    found = []
    for line in ops.lines:
        found.append(_signature(line, known))
        if len(line.outputs) != len(line.specs):
            raise OpListError(f"{line.op}: {len(line.outputs)} results, {len(line.specs)} shapes")
        known.update(zip(line.outputs, line.specs, strict=True))
    return found


def _signature(line: Line, known: Mapping[str, TensorSpec]) -> OpSignature:
    missing = [name for name in line.inputs if name not in known and name != "None"]
    if missing:
        raise OpListError(f"{line.op}: {missing[0]!r} is neither declared nor made before")
    name = line.op if "::" in line.op else f"aten::{line.op}"
    inputs = tuple(known.get(value) for value in line.inputs)
    return OpSignature(name, inputs, line.specs, line.attributes)


@dataclass(frozen=True)
class Section:
    """A list that is repeated; ``carry`` names the input that takes the last result."""

    ops: OpList
    repeat: int = 1
    carry: str = ""


def graph(name: str, sections: tuple[Section, ...]) -> GraphSpec:
    """All sections as one graph: a repeated section takes the result of the one before it."""
    nodes: list[GraphNode] = []
    inputs: list[int] = []
    counter = 0
    last = -1
    shared: dict[str, int] = {}
    for section in sections:
        op_signatures = signatures(section.ops)
        for _ in range(section.repeat):
            values: dict[str, int] = {}
            for key in section.ops.inputs:
                if key == section.carry and last >= 0:
                    values[key] = last
                elif key in shared and key.startswith("$"):
                    values[key] = shared[key]
                else:
                    values[key] = counter
                    inputs += [] if key.startswith("%") else [counter]
                    counter += 1
            for line, op in zip(section.ops.lines, op_signatures, strict=True):
                outputs = tuple(range(counter, counter + len(line.outputs)))
                counter += len(outputs)
                reads = tuple(values.get(key) for key in line.inputs)
                nodes.append(GraphNode(op, reads, outputs))
                values.update(zip(line.outputs, outputs, strict=True))
            last = values[section.ops.lines[-1].outputs[0]]
            shared.update({k: v for k, v in values.items() if k.startswith("$")})
    return GraphSpec(name, tuple(nodes), tuple(inputs), (last,))
