"""Splits a script's model over cores as Megatron-LM does, and counts what the cores then exchange.

In a module that holds linear layers, those that read its input are split by columns and the one
that leads back to its width by rows: heads of attention and the inner width of a feed-forward part
are divided, and the results are summed by an all-reduce, forward after the rows and backward before
the columns. The embedding and the output layer are split by the vocabulary, and the logits are
gathered.

The script records the step of one of the cores: its tensors have the shapes of a shard, and what
is not split (norms, residuals) is done by each core in full.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn.modules import module as module_hooks

from trnscope.estimate.recorded import TensorCollective
from trnscope.sim.signature import CollectiveKind

HEADS = (
    "num_kv_heads",
    "num_key_value_heads",
    "n_kv_heads",
    "num_heads",
    "num_attention_heads",
    "n_heads",
    "n_head",
)
"""Names by which attention modules call their numbers of heads."""


class SplitError(Exception):
    """The model cannot be split over so many cores."""


@dataclass(frozen=True)
class Group:
    """Linear layers of a module that are split together."""

    name: str
    owner: nn.Module
    columns: tuple[tuple[str, nn.Linear], ...]
    rows: tuple[str, nn.Linear]


def find_groups(model: nn.Module) -> tuple[Group, ...]:
    """Modules whose linear layers lead from a width to another and back."""
    found = (_group(name, module) for name, module in model.named_modules())
    return tuple(group for group in found if group is not None)


def _group(name: str, owner: nn.Module) -> Group | None:
    layers = [(n, m) for n, m in owner.named_children() if isinstance(m, nn.Linear)]
    if len(layers) < 2 or (isinstance(owner, nn.Sequential) and len(layers) != 2):
        return None
    width = layers[0][1].in_features
    back = [pair for pair in layers[1:] if pair[1].out_features == width]
    narrowing = [pair for pair in back if pair[1].in_features != width]
    if not back:
        return None
    rows = (narrowing or back)[-1]
    columns = tuple(pair for pair in layers if pair[1] is not rows[1])
    if any(layer.in_features != width for _, layer in columns):
        return None
    return Group(name or type(owner).__name__, owner, columns, rows)


class TensorParallel:
    """Splits each model at its first call and listens to it from then on."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._seen: set[int] = set()
        self._sent: Counter[tuple[CollectiveKind, int]] = Counter()
        self._handle = module_hooks.register_module_forward_pre_hook(self._called)

    def stop(self) -> None:
        """Split no further models."""
        self._handle.remove()

    def begin(self) -> None:
        """A stretch begins: forget earlier ones."""
        self._sent.clear()

    def sent(self) -> tuple[TensorCollective, ...]:
        """What the stretch exchanged."""
        return tuple(TensorCollective(kind, size, n) for (kind, size), n in self._sent.items())

    def _called(self, module: nn.Module, _args: object) -> None:
        if id(module) not in self._seen:
            self.split(module)

    def split(self, model: nn.Module) -> None:
        """Keep one core's share of the weights. Raises :class:`SplitError` where there is none."""
        self._seen.update(id(part) for part in model.modules())
        if not any(True for _ in model.parameters()):
            return
        if type(model).__name__ == "OptimizedModule":
            raise SplitError("it compiles its model, and only eager ones can be split")
        groups = find_groups(model)
        if not groups:
            raise SplitError(
                f"{type(model).__name__} has no module whose linear layers lead back to their width"
            )
        for group in groups:
            self._check(group)
        for group in groups:
            self._split_group(group)
        self._split_vocabulary(model, groups)

    def _check(self, group: Group) -> None:
        for name in HEADS:
            for holder in (group.owner, getattr(group.owner, "config", None)):
                heads = getattr(holder, name, None)
                if isinstance(heads, int) and heads % self._size:
                    raise SplitError(f"{group.name} has {heads} heads ({name})")
        for name, layer in group.columns:
            if layer.out_features % self._size:
                raise SplitError(f"{group.name}.{name} has {layer.out_features} columns")
        name, layer = group.rows
        if layer.in_features % self._size:
            raise SplitError(f"{group.name}.{name} has {layer.in_features} rows")

    def _split_group(self, group: Group) -> None:
        for _, layer in group.columns:
            self._keep_rows_of(layer)
        _, layer = group.rows
        _keep(layer.weight, 1, self._size)
        layer.in_features //= self._size
        layer.register_forward_hook(self._sum)
        for name in HEADS:
            if isinstance(vars(group.owner).get(name), int):
                setattr(group.owner, name, getattr(group.owner, name) // self._size)

    def _keep_rows_of(self, layer: nn.Linear) -> None:
        """A linear layer's columns are the rows of its weight."""
        _keep(layer.weight, 0, self._size)
        if layer.bias is not None:
            _keep(layer.bias, 0, self._size)
        layer.out_features //= self._size

    def _split_vocabulary(self, model: nn.Module, groups: tuple[Group, ...]) -> None:
        tables = [m for m in model.modules() if isinstance(m, nn.Embedding)]
        sizes = {table.num_embeddings for table in tables}
        taken = {id(layer) for group in groups for _, layer in (*group.columns, group.rows)}
        heads = [
            layer
            for layer in model.modules()
            if isinstance(layer, nn.Linear)
            and id(layer) not in taken
            and layer.out_features in sizes
            and layer.out_features % self._size == 0
        ]
        for head in heads:
            for table in tables:
                if table.num_embeddings == head.out_features:
                    self._split_table(table, head)
            self._split_head(head)

    def _split_table(self, table: nn.Embedding, head: nn.Linear) -> None:
        if table.weight is not head.weight:
            _keep(table.weight, 0, self._size)
        table.register_forward_hook(self._sum_forward)

    def _split_head(self, head: nn.Linear) -> None:
        self._keep_rows_of(head)
        head.register_forward_hook(self._gather)

    def _sum(self, _layer: nn.Module, _args: object, result: torch.Tensor) -> None:
        """After the rows; on the way back, before the columns, as many bytes again."""
        self._note("all_reduce", result)
        self._also_backward(result)

    def _sum_forward(self, _layer: nn.Module, _args: object, result: torch.Tensor) -> None:
        self._note("all_reduce", result)

    def _gather(
        self, _layer: nn.Module, args: tuple[torch.Tensor, ...], result: torch.Tensor
    ) -> torch.Tensor:
        """All logits on every core; on the way back the input's gradient is summed."""
        apply: Any = _Gathered.apply
        whole: torch.Tensor = apply(result, self._size)
        self._note("all_gather", whole)
        if args and args[0].requires_grad:
            self._also_backward(args[0])
        return whole

    def _also_backward(self, tensor: torch.Tensor) -> None:
        if tensor.requires_grad:
            watched: Any = tensor
            watched.register_hook(self._gradient)

    def _gradient(self, gradient: torch.Tensor) -> None:
        self._note("all_reduce", gradient)

    def _note(self, kind: CollectiveKind, tensor: torch.Tensor) -> None:
        self._sent[kind, tensor.numel() * tensor.element_size()] += 1


class _Gathered(torch.autograd.Function):
    """The last dimension of all cores together, from this core's part."""

    @staticmethod
    def forward(ctx: Any, part: torch.Tensor, size: int) -> torch.Tensor:
        ctx.length = part.shape[-1]
        return part.new_empty(*part.shape[:-1], part.shape[-1] * size)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None]:
        return gradient.narrow(-1, 0, ctx.length).contiguous(), None


def _keep(parameter: torch.Tensor, dimension: int, size: int) -> None:
    """One core's share of a parameter; what it holds does not matter."""
    shape = list(parameter.shape)
    shape[dimension] //= size
    parameter.data = parameter.data.new_empty(shape)
