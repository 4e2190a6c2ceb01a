"""What torch.profiler's words mean: categories, names of device work, devices and ranks.

Read: every generation of Kineto (2020 to 2026), its Python exporter, and the categories of
its out-of-tree devices; Ascend's task types and VizTracer's category besides. A category is
compared without regard to case. What is not listed here is kept as an OTHER slice of its
thread.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from trnscope.model.kinds import DeviceKind, SliceKind


class Place(IntEnum):
    """Where a row of a category belongs."""

    HOST = 0
    DEVICE = 1
    PROFILER = 2
    INSTANT = 3
    """A point in time, even where a writer gave it a duration."""
    DRIVER = 4
    """``privateuse1_driver``: device work, unless the same device also has kernel rows."""


@dataclass(frozen=True)
class CategoryRule:
    """What a category's rows are. ``device_kind`` is set where the category tells it."""

    kind: SliceKind
    place: Place
    device_kind: DeviceKind | None = None


_HOST_KINDS: dict[SliceKind, tuple[str, ...]] = {
    SliceKind.CPU_OP: ("cpu_op", "operator"),
    SliceKind.ANNOTATION: ("user_annotation",),
    SliceKind.PYTHON: ("python_function", "python", "fee"),
    SliceKind.OVERHEAD: ("overhead",),
}
_RUNTIME_CATEGORIES: dict[str, DeviceKind | None] = {
    "runtime": None,
    "cuda_runtime": None,  # ROCm builds write this one too
    "cuda_driver": None,
    "hip_runtime": DeviceKind.HIP,
    "xpu_runtime": DeviceKind.XPU,
    "xpu_driver": DeviceKind.XPU,
    "mtia_runtime": DeviceKind.MTIA,
    "glow_runtime": None,
    "hpu_op": DeviceKind.HPU,
    "privateuse1_runtime": DeviceKind.PRIVATEUSE1,
    "neuron_rt": DeviceKind.NEURON,  # trnscope's own exports of Neuron profiles
}
_DEVICE_CATEGORIES: dict[str, tuple[SliceKind, DeviceKind | None]] = {
    "kernel": (SliceKind.KERNEL, None),
    "gpu_memcpy": (SliceKind.MEMCPY, None),
    "memcpy": (SliceKind.MEMCPY, None),
    "gpu_memset": (SliceKind.MEMSET, None),
    "memset": (SliceKind.MEMSET, None),
    "collective_comm": (SliceKind.COLLECTIVE, None),
    "mtia_ccp_events": (SliceKind.KERNEL, DeviceKind.MTIA),
    "gpu_user_annotation": (SliceKind.DEVICE_ANNOTATION, None),
    "cuda_profiler_range": (SliceKind.DEVICE_ANNOTATION, None),
    "xpu_scope_profiler": (SliceKind.DEVICE_ANNOTATION, DeviceKind.XPU),
    "cuda_sync": (SliceKind.SYNC, None),
    "cuda_event": (SliceKind.SYNC, None),
    "xpu_sync": (SliceKind.SYNC, DeviceKind.XPU),
    "neuron_instruction": (SliceKind.INSTRUCTION, DeviceKind.NEURON),
}

CATEGORY_RULES: dict[str, CategoryRule] = {
    **{
        category: CategoryRule(kind, Place.HOST)
        for kind, categories in _HOST_KINDS.items()
        for category in categories
    },
    **{
        category: CategoryRule(SliceKind.RUNTIME, Place.HOST, device)
        for category, device in _RUNTIME_CATEGORIES.items()
    },
    **{
        category: CategoryRule(kind, Place.DEVICE, device)
        for category, (kind, device) in _DEVICE_CATEGORIES.items()
    },
    "privateuse1_driver": CategoryRule(SliceKind.KERNEL, Place.DRIVER, DeviceKind.PRIVATEUSE1),
    "trace": CategoryRule(SliceKind.PROFILER, Place.PROFILER),
    "cpu_instant_event": CategoryRule(SliceKind.OTHER, Place.INSTANT),
}
"""Lower-case category to its meaning."""

OTHER_RULE = CategoryRule(SliceKind.OTHER, Place.HOST)
MEMORY_NAME = "[memory]"
PROFILER_PROCESSES = frozenset({"Spans", "Traces", ""})
"""Process ids under which Kineto files rows of its own."""

_KINETO_ONLY = frozenset(CATEGORY_RULES) - {"python", "fee", "runtime", "trace", "operator"}


def rule_of(category: str) -> CategoryRule:
    """The meaning of a category."""
    return CATEGORY_RULES.get(category.lower(), OTHER_RULE)


def is_kineto_category(category: str) -> bool:
    """Whether only torch.profiler writes this category."""
    return category.lower() in _KINETO_ONLY


# Names -----------------------------------------------------------------------------------

_COLLECTIVE = re.compile(
    r"nccl|rccl|hccl|hcom_|oneccl|xccl|mccl|mscclpp|nvshmem|cross_device_reduce"
    r"|multimem_all_reduce|(?:one|two)_shot_all_reduce"
    r"|^cc_(?:running|exec)$|^All(?:Reduce|Gather|ToAll)$|^ReduceScatter$",  # Neuron's
    re.IGNORECASE,
)
_MEMCPY = re.compile(
    r"^(?:memcpy|copy[ _]|dma_request|nrt_tensor_(?:read|write|copy))|memcpy", re.I
)
_MEMSET = re.compile(r"^memset|memset_async", re.IGNORECASE)
_OLD_ANNOTATION = re.compile(
    r"ProfilerStep#\d+$|Optimizer\.(?:step|zero_grad)#|enumerate\(DataLoader\)#"
)


def kernel_kind(name: str) -> SliceKind:
    """COLLECTIVE for a kernel whose name is one of a communication library, else KERNEL."""
    return SliceKind.COLLECTIVE if _COLLECTIVE.search(name) else SliceKind.KERNEL


def device_kind_by_name(name: str) -> SliceKind:
    """The kind of device work whose category does not tell computing from copying."""
    if _MEMCPY.search(name):
        return SliceKind.MEMCPY
    if _MEMSET.search(name):
        return SliceKind.MEMSET
    return kernel_kind(name)


def is_old_annotation(name: str) -> bool:
    """Whether an "Operator" of 2020-21 is a range that later got its own category."""
    return _OLD_ANNOTATION.match(name) is not None


def task_kind(task_type: str) -> SliceKind:
    """The kind of an Ascend device row by its "Task Type"; KERNEL unless it says otherwise."""
    task = task_type.upper()
    if "MEMCPY" in task or "SDMA" in task:
        return SliceKind.MEMCPY
    if "MEMSET" in task:
        return SliceKind.MEMSET
    if "WAIT" in task or "EVENT" in task or "NOTIFY" in task:
        return SliceKind.SYNC
    if "HCCL" in task or "COMMUNICATION" in task:
        return SliceKind.COLLECTIVE
    return SliceKind.KERNEL


# Devices ---------------------------------------------------------------------------------

_RUNTIME_PREFIXES: tuple[tuple[str, DeviceKind], ...] = (
    ("hip", DeviceKind.HIP),
    ("nrt_", DeviceKind.NEURON),
    ("neuron", DeviceKind.NEURON),
    ("aclrt", DeviceKind.NPU),
    ("aclnn", DeviceKind.NPU),
    ("zeCommand", DeviceKind.XPU),
    ("urEnqueue", DeviceKind.XPU),
)
_PRIORITY = (
    DeviceKind.NEURON,
    DeviceKind.NPU,
    DeviceKind.HPU,
    DeviceKind.XPU,
    DeviceKind.MTIA,
    DeviceKind.PRIVATEUSE1,
    DeviceKind.HIP,
)
_LABELS: tuple[tuple[str, DeviceKind], ...] = (
    ("MTIA", DeviceKind.MTIA),
    ("XPU", DeviceKind.XPU),
    ("HPU", DeviceKind.HPU),
    ("NEURON", DeviceKind.NEURON),
    ("NPU", DeviceKind.NPU),
    ("ASCEND", DeviceKind.NPU),
)
_AMD = re.compile(r"\bAMD\b|Radeon|Instinct|gfx\d", re.IGNORECASE)
_HIP_HEADERS = re.compile(r"hip_|roctracer|rocprof|rocm")


def runtime_evidence(name: str) -> DeviceKind | None:
    """Whose runtime a host call belongs to, by its prefix."""
    for prefix, kind in _RUNTIME_PREFIXES:
        if name.startswith(prefix):
            return kind
    return None


def label_evidence(label: str | None) -> DeviceKind | None:
    """The device family that a process label or name gives (``MTIA 9``)."""
    text = (label or "").upper()
    for word, kind in _LABELS:
        if text.startswith(word):
            return kind
    return None


def decide_device_kind(evidence: Iterable[DeviceKind]) -> DeviceKind:
    """One family out of all hints of a file.

    Without any hint: CUDA, the only writer of ``kernel`` rows that leaves no other mark.
    """
    found = set(evidence)
    return next((kind for kind in _PRIORITY if kind in found), DeviceKind.CUDA)


# Header ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class DeviceProperty:
    """One entry of ``deviceProperties``."""

    index: int
    name: str | None
    simulated: bool


@dataclass(frozen=True)
class Header:
    """The members of the document beside the events, decoded as far as they make sense."""

    base_time_ns: int
    base_time_valid: bool
    rank: int | None
    world_size: int | None
    devices: tuple[DeviceProperty, ...]
    evidence: frozenset[DeviceKind]
    simulated: bool
    is_kineto: bool
    is_partial_export: bool
    """Whether trnscope exported the file from an incomplete trace."""
    texts: Mapping[str, str]
    """Every member as JSON text."""

    def device_name(self, index: int) -> str | None:
        """The product name; ROCm numbers its rows otherwise, so equal names serve all rows."""
        named = [device.name for device in self.devices if device.index == index]
        if named:
            return named[0]
        names = {device.name for device in self.devices}
        return names.pop() if len(names) == 1 else None


_MAX_TIME_NS = (1 << 61) - 1
_MAX_COUNT = (1 << 31) - 1
_MAX_DIGITS = 10
_KINETO_HEADERS = ("schemaVersion", "deviceProperties", "baseTimeNanoseconds", "distributedInfo")


def read_header(members: Iterable[tuple[str, bytes]]) -> Header:
    """Decode the header; what is malformed counts as absent. A later duplicate wins."""
    texts = {key: raw.decode("utf-8", "replace") for key, raw in members}
    values = {key: _json(text) for key, text in texts.items()}
    base = values.get("baseTimeNanoseconds", 0)
    base_valid = _is_int(base) and 0 <= base <= _MAX_TIME_NS
    info = _as_object(values.get("distributedInfo"))
    devices = _device_properties(values.get("deviceProperties"))
    export = _as_object(values.get("trnscopeExport"))
    return Header(
        base_time_ns=base if base_valid else 0,
        base_time_valid=base_valid,
        rank=_count(info.get("rank")),
        world_size=_count(info.get("world_size")),
        devices=devices,
        evidence=frozenset(_header_evidence(texts, info, devices)),
        simulated=any(device.simulated for device in devices) or export.get("simulated") is True,
        is_partial_export=export.get("complete") is False,
        is_kineto=any(key in texts for key in _KINETO_HEADERS),
        texts=texts,
    )


def _header_evidence(
    texts: Mapping[str, str], info: Mapping[str, Any], devices: Iterable[DeviceProperty]
) -> Iterable[DeviceKind]:
    if any(_HIP_HEADERS.match(key) for key in texts) or any(
        _AMD.search(device.name or "") for device in devices
    ):
        yield DeviceKind.HIP
    backend = str(info.get("backend", ""))
    if "neuron" in backend:
        yield DeviceKind.NEURON
    if "mtia" in backend:
        yield DeviceKind.MTIA


def _device_properties(value: Any) -> tuple[DeviceProperty, ...]:
    entries = value if isinstance(value, list) else []
    found = []
    for entry in entries:
        properties = _as_object(entry)
        index = _count(properties.get("id"))
        if index is not None:
            name = properties.get("name")
            found.append(
                DeviceProperty(
                    index,
                    name if isinstance(name, str) and name else None,
                    properties.get("simulated") is True,
                )
            )
    return tuple(found)


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _as_object(value: Any) -> Mapping[str, Any]:
    """An object; some writers put the object's JSON into a string."""
    if isinstance(value, str):
        value = _json(value)
    return value if isinstance(value, dict) else {}


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _count(value: Any) -> int | None:
    """A rank, a size or an id, where it is one that fits 31 bits."""
    if isinstance(value, str) and value.isdecimal() and len(value) <= _MAX_DIGITS:
        value = int(value)
    return value if _is_int(value) and 0 <= value <= _MAX_COUNT else None
