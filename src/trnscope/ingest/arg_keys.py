"""Which members of an event's args are lifted, in every spelling that writers use."""

from __future__ import annotations

from dataclasses import dataclass

from trnscope.store.attributes import ATTRIBUTES, AttributeType

_SPELLINGS: dict[str, tuple[str, ...]] = {
    "correlation": ("correlation",),
    "external_id": ("External id", "external id"),
    "sequence_number": ("Sequence number",),
    "forward_thread": ("Fwd thread id",),
    "stream": ("stream", "Stream Id"),
    "device": ("device", "Device Id"),
    "bytes": ("bytes",),
    "flops": ("flops",),
    "graph_id": ("graph id",),
    "graph_node_id": ("graph node id",),
    "collective_seq": ("Seq",),
    "comms_id": ("Comms Id",),
    "in_nelems": ("In msg nelems", "In msg size"),
    "out_nelems": ("Out msg nelems", "Out msg size"),
    "group_size": ("Group size",),
    "input_dims": ("Input Dims", "Input dims"),
    "input_types": ("Input type",),
    "input_strides": ("Input Strides",),
    "concrete_inputs": ("Concrete Inputs",),
    "module_hierarchy": ("Module Hierarchy",),
    "call_stack": ("Call stack",),
    "collective_name": ("Collective name",),
    "dtype": ("dtype",),
    "process_group_name": ("Process Group Name", "Process Group ID"),
    "process_group_ranks": ("Process Group Ranks",),
    "memcpy_kind": ("kind",),
    "sync_kind": ("cuda_sync_kind",),
    "grid": ("grid",),
    "block": ("block",),
    "finished": ("finished",),
    "layer": ("neuron layer",),
    "hlo_name": ("hlo_name",),
    "source_location": ("nki_source_location",),
}

TASK_TYPE = "task_type"
"""Ascend's kind of device work: travels like an attribute, but is not stored."""

# Read by ingest alone: memory events and metadata events.
_INGEST_INTS = ("Addr", "Bytes", "Device Type", "Total Allocated", "Total Reserved", "sort_index")
_INGEST_TEXTS = ("name", "labels")


@dataclass(frozen=True)
class ArgKey:
    """One member to lift. ``attribute`` is null where it feeds no attribute of slices."""

    json_key: str
    is_text: bool
    attribute: str | None


ARG_KEYS: tuple[ArgKey, ...] = (
    *(
        ArgKey(spelling, ATTRIBUTES[attribute] is AttributeType.TEXT, attribute)
        for attribute, spellings in _SPELLINGS.items()
        for spelling in spellings
    ),
    ArgKey("Task Type", True, TASK_TYPE),
    *(ArgKey(key, False, None) for key in _INGEST_INTS),
    *(ArgKey(key, True, None) for key in _INGEST_TEXTS),
)

INDEX: dict[str, int] = {key.json_key: i for i, key in enumerate(ARG_KEYS)}
"""JSON key to its position in ``ARG_KEYS``, which is its number in the scanner."""


def scanner_keys() -> list[tuple[str, str]]:
    """``ARG_KEYS`` as the scanner takes them."""
    return [(key.json_key, "text" if key.is_text else "int") for key in ARG_KEYS]
