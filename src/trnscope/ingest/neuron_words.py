"""What the words of the Neuron runtime and of Neuron Explorer mean: events, engines, opcodes.

Sources: the event groups and the glossary of Neuron Explorer's documentation, the table of
schema 7.4.0. An event that is not listed keeps its name and stays a call of its thread.
"""

from __future__ import annotations

import re
from enum import IntEnum

from trnscope.ingest.kineto import Place, is_old_annotation, rule_of
from trnscope.model.kinds import SliceKind


class Origin(IntEnum):
    """Who wrote an event of the system profile."""

    FRAMEWORK = 0
    """torch or JAX on the host."""
    RUNTIME = 1
    """The Neuron runtime on the host."""
    HARDWARE = 2
    """The device."""


_ORIGINS = {
    "framework": Origin.FRAMEWORK,
    "neuron_rt": Origin.RUNTIME,
    "neuron_hw": Origin.HARDWARE,
}
_FRAMEWORK_TYPE = 99999
_TRACE_SUFFIX = " [trace.json]"

EXECUTIONS = frozenset({"nc_exec_running", "device_exec"})
"""A NEFF runs on a NeuronCore."""
_COLLECTIVES = frozenset({"cc_running", "cc_exec"})
_BARRIERS = frozenset({"cc_exec_barrier"})
_POINTS = frozenset({"timestamp_sync_point", "numerical_err", "hw_notify"})
_SWITCHES = frozenset({"nc_model_switch", "nrt_model_switch"})
_COPIES_IN = frozenset({"dmem_buf_copyin", "dmem_buf_copyin_batch"})
_COPIES_OUT = frozenset({"dmem_buf_copyout", "dmem_buf_copyout_batch"})
_COPIES_WITHIN = frozenset({"dmem_buf_copy", "nrt_tensor_copy"})
_HARDWARE = EXECUTIONS | _COLLECTIVES | _BARRIERS | _POINTS | {"nc_model_switch"}

LAUNCHES = (
    "kbl_exec_core",
    "kmgr_exec_core",
    "nrt_model_submit",
    "nrta_execute_schedule",
    "nrt_execute",
    "runtime_execute",
    "kbl_exec_pre",
)
"""Calls that enqueue an execution: the first of these in its chain is its launch.

The call nearest to the core comes first: those around it last long, so that work would pass for
launched while the host still prepares it.
"""


def origin_of(source: str | None, name: str, group: str, event_type: int | None) -> Origin:
    """Who wrote an event: as it says, else by its group, its type or its name."""
    if source in _ORIGINS:
        return _ORIGINS[source]
    if group.startswith("framework") or event_type == _FRAMEWORK_TYPE:
        return Origin.FRAMEWORK
    if name in _HARDWARE:
        return Origin.HARDWARE
    return Origin.RUNTIME


def plain_name(name: str) -> str:
    """A framework event's own name, without the mark of the file that it came from."""
    return name.removesuffix(_TRACE_SUFFIX)


def is_point(name: str) -> bool:
    """Whether an event is a point in time."""
    return name in _POINTS


def hardware_kind(name: str) -> SliceKind:
    """What an event of the device is."""
    if name in _COLLECTIVES:
        return SliceKind.COLLECTIVE
    if name in _BARRIERS:
        return SliceKind.SYNC
    if copy_direction(name) is not None:
        return SliceKind.MEMCPY
    if name in EXECUTIONS:
        return SliceKind.KERNEL
    return SliceKind.DEVICE_ANNOTATION


def copy_direction(name: str) -> str | None:
    """``HtoD``, ``DtoH`` or ``DtoD`` for a copy; null for anything else."""
    if name in _COPIES_IN:
        return "HtoD"
    if name in _COPIES_OUT:
        return "DtoH"
    return "DtoD" if name in _COPIES_WITHIN else None


def framework_kind(name: str, category: str | None) -> tuple[SliceKind, Place]:
    """What an event of the framework is: by its category, where it is kept, else by its name."""
    if category:
        rule = rule_of(category)
        return rule.kind, rule.place
    if is_old_annotation(name):
        return SliceKind.ANNOTATION, Place.HOST
    is_op = "::" in name or name.startswith("PjitFunction")
    return (SliceKind.CPU_OP if is_op else SliceKind.ANNOTATION), Place.HOST


# Device profiles -------------------------------------------------------------------------

ENGINES = ("tensor", "vector", "scalar", "gpsimd", "sync")
"""The engines of a NeuronCore; the place here is the engine's number."""

_ENGINE_NAMES = {
    "pe": "tensor",
    "dve": "vector",
    "act": "scalar",
    "activation": "scalar",
    "pool": "gpsimd",
    "sp": "sync",
    **{name: name for name in ENGINES},
}
_WAITS = ("SEMAPHORE", "WAIT", "BARRIER")


def engine_of(text: str) -> str:
    """The engine that a table's word names (``TensorMatrix``, ``Pool``), in one spelling."""
    word = text.strip().lower()
    if word in _ENGINE_NAMES:
        return _ENGINE_NAMES[word]
    return next((name for name in ENGINES if word.startswith(name)), text.strip() or "unknown")


def engine_number(engine: str) -> int | None:
    """The number of a known engine."""
    return ENGINES.index(engine) if engine in ENGINES else None


def is_wait(opcode: str) -> bool:
    """Whether an instruction only waits: then its engine is not active."""
    word = opcode.upper()
    return any(wait in word for wait in _WAITS)


_BITS = re.compile(r"[a-z](8|16|32|64|128)(?![0-9])", re.IGNORECASE)


def item_bytes(dtype: str) -> int | None:
    """Bytes of one element of a type, by the width in its name: ``bf16``, ``float8_e4m3fn``."""
    found = _BITS.search(dtype)
    return None if found is None else int(found[1]) // 8
