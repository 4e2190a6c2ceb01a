"""Functional collectives, as torch.compile traces them into a graph.

They are no work of the engines: the model of collectives gives their time. ``wait_tensor`` is free.
"""

from __future__ import annotations

from trnscope.sim.cost.lowering.coverage import base_name
from trnscope.sim.cost.lowering.work import attribute, size_bytes
from trnscope.sim.signature import CollectiveKind, CollectiveSpec, OpSignature

NAMESPACE = "c10d_functional"
KINDS: dict[str, CollectiveKind] = {
    "all_reduce": "all_reduce",
    "all_reduce_coalesced": "all_reduce",
    "all_gather_into_tensor": "all_gather",
    "all_gather_into_tensor_out": "all_gather",
    "all_gather_into_tensor_coalesced": "all_gather",
    "reduce_scatter_tensor": "reduce_scatter",
    "reduce_scatter_tensor_coalesced": "reduce_scatter",
    "all_to_all_single": "all_to_all",
    "broadcast": "broadcast",
}
UNKNOWN_RANKS = 0
"""The op does not say how large its group is: the model takes all cores of the instance."""


def is_collective(name: str) -> bool:
    """The op is a functional collective, by its full name."""
    return name.split("::")[0].endswith(NAMESPACE) and base_name(name) in KINDS


def spec_of(op: OpSignature) -> CollectiveSpec:
    """What is sent: the whole buffer of a rank, its inputs or, where it is larger, its results."""
    kind = KINDS[base_name(op.name)]
    tensors = [spec for spec in op.inputs if spec is not None]
    num_bytes = sum(size_bytes(spec) for spec in tensors)
    if kind == "all_gather":
        num_bytes = sum(size_bytes(spec) for spec in op.outputs)
    size = attribute(op, "group_size")
    ranks = size if isinstance(size, int) else UNKNOWN_RANKS
    dtype = tensors[0].dtype if tensors else "bfloat16"
    return CollectiveSpec(kind, num_bytes, ranks, dtype)
