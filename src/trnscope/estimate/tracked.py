"""The script's models and optimizers: what their memory is for, and what a step is given."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch import nn

from trnscope.estimate.memory import Use
from trnscope.estimate.recorded import Batch, Unit
from trnscope.sim.activation import DEVICE

_ALIGNMENT = 512
"""Bytes to which the device rounds allocations; as ``csrc/hbm.cpp``."""
_TOKEN_TYPES = (torch.int64, torch.int32)


class TrackedModel:
    """Everything that the script called or stepped so far."""

    def __init__(self) -> None:
        self._modules: dict[int, nn.Module] = {}
        self._optimizers: dict[int, Any] = {}
        self._uses: dict[int, Use] = {}
        self._sizes: dict[int, int] = {}
        self._gradient_bytes: dict[int, int] = {}
        """By parameter."""
        self._inputs: list[tuple[int, tuple[int, ...], torch.dtype]] = []

    def begin(self) -> None:
        """A stretch begins: forget what earlier ones were given and what is no more."""
        self._inputs.clear()
        self._uses.clear()
        self._sizes.clear()
        self._note_gradients()

    def module_called(
        self, module: Any, first_input: tuple[tuple[int, ...], torch.dtype] | None
    ) -> None:
        """An outermost call of a model."""
        self._modules[id(module)] = module
        if first_input is not None:
            self._inputs.append((id(module), *first_input))

    def optimizer_stepped(self, optimizer: Any) -> None:
        """Its gradients are still there."""
        self._optimizers[id(optimizer)] = optimizer
        self._note_gradients()

    def known_blocks(self) -> tuple[dict[int, Use], dict[int, int]]:
        """Uses and sizes by address, of now and of all optimizer steps of the stretch."""
        for parameter in self._parameters():
            self._note(parameter, Use.PARAMETERS)
        for optimizer in self._optimizers.values():
            for state in optimizer.state.values():
                for value in state.values() if isinstance(state, dict) else ():
                    self._note(value, Use.OPTIMIZER_STATE)
        return dict(self._uses), dict(self._sizes)

    def units(self) -> tuple[Unit, ...]:
        """Each member of a ``ModuleList`` is one; what is outside of them is the first."""
        layers = [pair for module in self._modules.values() for pair in _layers(module)]
        seen: set[int] = set()
        found = [self._unit(name, layer.parameters(), seen) for name, layer in layers]
        return (self._unit("(outside of layers)", self._parameters(), seen), *found)

    def batch(self, num_steps: int) -> Batch | None:
        """Of the largest model that was called."""
        if not self._inputs:
            return None
        largest = max({number for number, *_ in self._inputs}, key=self._size_of)
        given = [(shape, dtype) for number, shape, dtype in self._inputs if number == largest]
        shape = given[0][0]
        of_tokens = all(dtype in _TOKEN_TYPES and len(s) == 2 for s, dtype in given)
        return Batch(
            type(self._modules[largest]).__name__,
            shape,
            len(given) // num_steps,
            sum(s[0] if s else 1 for s, _ in given) // num_steps,
            sum(s[0] * s[1] for s, _ in given) // num_steps if of_tokens else None,
        )

    def _size_of(self, number: int) -> int:
        return sum(parameter.nbytes for parameter in self._modules[number].parameters())

    def _unit(self, name: str, parameters: Iterable[Any], seen: set[int]) -> Unit:
        own = [one for one in parameters if id(one) not in seen]
        seen.update(map(id, own))
        return Unit(
            name,
            sum(one.nbytes for one in own),
            sum(self._gradient_bytes.get(id(one), 0) for one in own),
        )

    def _parameters(self) -> Iterator[Any]:
        seen: set[int] = set()
        for one in self._all_parameters():
            if id(one) not in seen:
                seen.add(id(one))
                yield one

    def _all_parameters(self) -> Iterator[Any]:
        for module in self._modules.values():
            yield from module.parameters()
        for optimizer in self._optimizers.values():
            for group in optimizer.param_groups:
                yield from group["params"]

    def _note_gradients(self) -> None:
        for parameter in self._parameters():
            if parameter.grad is not None:
                self._note(parameter.grad, Use.GRADIENTS)
                self._gradient_bytes[id(parameter)] = parameter.grad.nbytes

    def _note(self, value: Any, use: Use) -> None:
        if not isinstance(value, torch.Tensor) or value.device.type != DEVICE:
            return
        storage = value.untyped_storage()
        address = storage.data_ptr()
        if address:
            self._uses[address] = use
            self._sizes[address] = -(-storage.nbytes() // _ALIGNMENT) * _ALIGNMENT


def _layers(module: nn.Module, path: str = "") -> Iterator[tuple[str, nn.Module]]:
    """Members of the outermost lists of modules."""
    for name, child in module.named_children():
        where = f"{path}{name}"
        if isinstance(child, nn.ModuleList):
            yield from ((f"{where}.{number}", member) for number, member in enumerate(child))
        else:
            yield from _layers(child, f"{where}.")
