"""From a graph that torch traced to the cost model's description of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import torch
from torch import fx

from trnscope.sim.signature import Attribute, GraphNode, GraphSpec, OpSignature, TensorSpec

_HIDDEN = ("device", "layout", "memory_format", "generator", "pin_memory", "non_blocking")
"""Arguments that are no attribute of an op."""


def to_spec(name: str, module: fx.GraphModule, inputs: Sequence[Any]) -> GraphSpec:
    """Describe the graph for inputs of these shapes; nothing is computed."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode(allow_non_fake_inputs=True) as mode:
        fakes = [mode.from_tensor(x) if isinstance(x, torch.Tensor) else x for x in inputs]
        recorder = _Recorder(module)
        outputs = recorder.run(*fakes)
    return GraphSpec(
        name,
        tuple(recorder.nodes),
        recorder.numbers_of(fakes),
        recorder.numbers_of(_flatten(outputs)),
    )


def tensor_spec(tensor: torch.Tensor) -> TensorSpec:
    """A tensor without its data."""
    strides = None if tensor.is_contiguous() else tuple(int(s) for s in tensor.stride())
    shape = tuple(int(size) for size in tensor.shape)
    return TensorSpec(shape, str(tensor.dtype).removeprefix("torch."), strides)


class _Recorder(fx.Interpreter):
    """Runs the graph with tensors that have shapes only, and notes each op."""

    def __init__(self, module: fx.GraphModule) -> None:
        super().__init__(module)
        self.nodes: list[GraphNode] = []
        self._numbers: dict[int, int] = {}
        self._alive: list[torch.Tensor] = []
        """Keeps the tensors, and with them their identities, until the end."""

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        """Run a node and note it if it is an op."""
        result = super().call_function(target, args, kwargs)
        if isinstance(target, torch._ops.OpOverload):
            self._note(target, args, kwargs, result)
        return result

    def _note(self, op: torch._ops.OpOverload, args: Any, kwargs: Any, result: Any) -> None:
        inputs, attributes = _arguments(op, args, kwargs)
        outputs = [x for x in _flatten(result) if isinstance(x, torch.Tensor)]
        signature = OpSignature(
            op._schema.name,
            tuple(None if x is None else tensor_spec(x) for x in inputs),
            tuple(tensor_spec(x) for x in outputs),
            (*attributes, *_group_size(dict(attributes))),
        )
        read = tuple(None if x is None else self._number(x) for x in inputs)
        self.nodes.append(GraphNode(signature, read, tuple(self._number(x) for x in outputs)))

    def _number(self, tensor: torch.Tensor) -> int:
        if id(tensor) not in self._numbers:
            self._numbers[id(tensor)] = len(self._numbers)
            self._alive.append(tensor)
        return self._numbers[id(tensor)]

    def numbers_of(self, values: Iterable[Any]) -> tuple[int, ...]:
        """Value numbers of the tensors among them."""
        return tuple(self._number(x) for x in values if isinstance(x, torch.Tensor))


def _arguments(
    op: torch._ops.OpOverload, args: Sequence[Any], kwargs: dict[str, Any]
) -> tuple[list[torch.Tensor | None], list[tuple[str, Attribute]]]:
    inputs: list[torch.Tensor | None] = []
    attributes: list[tuple[str, Attribute]] = []
    for position, argument in enumerate(op._schema.arguments):
        given = position < len(args)
        value = args[position] if given else kwargs.get(argument.name, argument.default_value)
        if "Tensor" in str(argument.type):
            inputs += [x if isinstance(x, torch.Tensor) else None for x in _as_list(value)]
        elif argument.name not in _HIDDEN and value is not None:
            attributes.append((argument.name, _attribute(value)))
    return inputs, attributes


def _group_size(attributes: dict[str, Attribute]) -> list[tuple[str, Attribute]]:
    """How many ranks a collective joins, where its arguments give only its group's name."""
    name = attributes.get("group_name")
    if not isinstance(name, str) or "group_size" in attributes:
        return []
    from torch.distributed import distributed_c10d

    groups: Any = distributed_c10d
    try:
        return [("group_size", int(groups._resolve_process_group(name).size()))]
    except (RuntimeError, ValueError):
        return []


def _as_list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _attribute(value: Any) -> Attribute:
    if isinstance(value, (list, tuple)):
        return tuple(_scalar(item) for item in value)
    return _scalar(value)


def _scalar(value: Any) -> bool | int | float | str | None:
    if value is None or isinstance(value, (bool, str, float)):
        return value
    if isinstance(value, (int, torch.SymInt)):
        return int(value)
    return str(value).removeprefix("torch.")


def _flatten(value: Any) -> Iterator[Any]:
    if isinstance(value, (list, tuple)):
        for item in value:
            yield from _flatten(item)
    else:
        yield value
