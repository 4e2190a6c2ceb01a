"""Which event arguments are lifted into typed columns, and their types."""

from __future__ import annotations

from enum import Enum
from typing import Any

import numpy as np


class AttributeType(Enum):
    """How an attribute's values are stored."""

    SIGNED = "i64"
    UNSIGNED = "u64"
    """Ids: exact up to 2**64 - 1."""
    TEXT = "text"
    """String ids. A JSON string's own text, else the value's JSON text."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """The numpy type of the values."""
        if self is AttributeType.SIGNED:
            return np.dtype(np.int64)
        return np.dtype(np.uint64 if self is AttributeType.UNSIGNED else np.uint32)


_SIGNED = (
    "sequence_number",
    "forward_thread",
    "stream",
    "device",
    "bytes",
    "flops",
    "collective_seq",
    "in_nelems",
    "out_nelems",
    "group_size",
)
_UNSIGNED = ("correlation", "external_id", "comms_id", "graph_id", "graph_node_id")
_TEXT = (
    "input_dims",
    "input_types",
    "input_strides",
    "concrete_inputs",
    "module_hierarchy",
    "call_stack",
    "collective_name",
    "dtype",
    "process_group_name",
    "process_group_ranks",
    "memcpy_kind",
    "sync_kind",
    "grid",
    "block",
    "finished",
    "layer",
    "hlo_name",
    "source_location",
)

ATTRIBUTES: dict[str, AttributeType] = {
    **dict.fromkeys(_SIGNED, AttributeType.SIGNED),
    **dict.fromkeys(_UNSIGNED, AttributeType.UNSIGNED),
    **dict.fromkeys(_TEXT, AttributeType.TEXT),
}
"""Attribute key to type. The key is trnscope's own; ingest maps each writer's spelling to it."""
