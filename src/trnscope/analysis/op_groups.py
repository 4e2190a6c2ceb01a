"""What calls are grouped by: name, input shapes, Python stack or module."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

import numpy as np
import numpy.typing as npt

from trnscope import _native
from trnscope.analysis.backward import link_backward
from trnscope.analysis.grouping import I64, U32, pair_up
from trnscope.analysis.host_calls import HostCalls
from trnscope.errors import UsageError
from trnscope.model.kinds import SliceKind
from trnscope.store.reader import Trace
from trnscope.store.tables import Bool

_MODULE_FRAME = "nn.Module: "
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
"""Where an object lay in memory: it makes frames differ that are the same code."""
_STEP = "ProfilerStep#"


class GroupBy(str, Enum):
    """What makes two calls the same row."""

    NAME = "name"
    SHAPE = "shape"
    """Name and input shapes."""
    STACK = "stack"
    """Name and the Python frames around the call."""
    MODULE = "module"
    """Name and the path of modules around the call."""


@dataclass(frozen=True)
class RowKey:
    """What identifies a row. Calls of an op and an annotation of one name are two rows."""

    name: str
    is_annotation: bool = False
    input_shapes: str | None = None
    """Python text of the nested list, as torch writes it; absent where not recorded."""
    stack: tuple[str, ...] | None = None
    """Frames, innermost first."""
    module: str | None = None
    """Module names from the outermost, joined by ``/``."""


@dataclass(frozen=True, eq=False, repr=False)
class CallGroups:
    """A group for each slice of the trace, and the row that each group belongs to."""

    key: U32
    """By slice; at least ``num_groups`` for a slice that is no call."""
    num_groups: int
    """Groups of calls: they have the lower keys."""
    num_keys: int
    row_key: Callable[[int], RowKey]
    """Several groups may give the same row."""


def group_calls(
    trace: Trace, calls: HostCalls, group_by: GroupBy, stack_depth: int | None
) -> CallGroups:
    """Group the calls of a trace. Raises :class:`UsageError` where the trace does not hold
    what they are to be grouped by."""
    if group_by is GroupBy.NAME:
        return CallGroups(
            calls.key,
            calls.num_keys,
            calls.num_keys + calls.num_strings,
            lambda key: _name_row(trace, calls, key),
        )
    if group_by is GroupBy.SHAPE:
        detail, complete = _shapes(trace)
    else:
        detail, complete = _stacks(trace, calls, group_by, stack_depth)
    pairs = pair_up(np.minimum(calls.key, calls.num_keys), detail)
    is_call = pairs.first < calls.num_keys
    # Groups are ordered by name key, so that those of slices that are no calls come last.
    return CallGroups(
        pairs.key,
        int(np.count_nonzero(is_call)),
        pairs.num_groups,
        lambda group: complete(
            _name_row(trace, calls, int(pairs.first[group])), int(pairs.second[group])
        ),
    )


def _name_row(trace: Trace, calls: HostCalls, key: int) -> RowKey:
    name: str = trace.strings[key % calls.num_strings]
    is_step = name.startswith(_STEP)
    return RowKey("ProfilerStep*" if is_step else name, calls.is_annotation(key))


_Complete = Callable[[RowKey, int], RowKey]


def _shapes(trace: Trace) -> tuple[U32, _Complete]:
    """For each slice 0, or 1 + the string id of its input shapes."""
    detail = np.zeros(len(trace.slices), np.uint32)
    attribute = trace.attribute("input_dims")
    if attribute is None:
        return detail, lambda row, _: row
    detail[attribute.slices] = attribute.values.astype(np.uint32) + 1

    def complete(row: RowKey, value: int) -> RowKey:
        text = "[]" if value == 0 else _torch_shapes(trace.strings[value - 1])
        return RowKey(row.name, row.is_annotation, input_shapes=text)

    return detail, complete


def _torch_shapes(dims: str) -> str:
    """The shapes as torch groups by them: a list of tensors counts as an empty shape."""
    try:
        shapes = json.loads(dims)
        if not isinstance(shapes, list):
            return dims
        return str([[] if _is_tensor_list(shape) else shape for shape in shapes])
    except (ValueError, RecursionError):
        return dims


def _is_tensor_list(shape: object) -> bool:
    return isinstance(shape, list) and any(isinstance(member, list) for member in shape)


@dataclass(frozen=True, eq=False, repr=False)
class _Paths:
    """Chains of Python frames. Path 0 is the empty one."""

    parent: list[int]
    frame: list[int]
    """String id of the innermost frame's name."""

    def frames(self, path: int) -> list[int]:
        """Name ids, innermost first."""
        names = []
        while path:
            names.append(self.frame[path])
            path = self.parent[path]
        return names


def _stacks(
    trace: Trace, calls: HostCalls, group_by: GroupBy, stack_depth: int | None
) -> tuple[U32, _Complete]:
    """For each slice the number of its stack (or its module path), 0 for none."""
    if group_by is GroupBy.MODULE:
        stack_depth = None
    paths, path_of = _python_paths(trace)
    path_of = _through_backward(trace, calls, path_of)
    recorded = "call_stack" if group_by is GroupBy.STACK else "module_hierarchy"
    attribute = trace.attribute(recorded)
    if attribute is None and len(paths.parent) == 1:
        raise UsageError(
            f"{trace.source.path}: no {group_by.value}s were recorded",
            hint="record with trnscope run --stack, or with_stack=True in torch.profiler",
        )
    texts: dict[tuple[str, ...], int] = {(): 0}
    number = np.zeros(len(paths.parent), np.uint32)
    read = _FrameReader(trace, group_by)
    for path in np.unique(path_of[calls.is_call]).tolist():
        parts = read.parts(paths.frames(path))[:stack_depth]
        number[path] = texts.setdefault(parts, len(texts))
    detail = number[path_of]
    if attribute is not None:
        ids, inverse = np.unique(attribute.values, return_inverse=True)
        split = [_split_recorded(trace.strings[i], group_by, stack_depth) for i in ids.tolist()]
        numbers = np.array([texts.setdefault(each, len(texts)) for each in split], np.uint32)
        detail[attribute.slices] = numbers[inverse]
    details = list(texts)

    def complete(row: RowKey, value: int) -> RowKey:
        if group_by is GroupBy.STACK:
            return RowKey(row.name, row.is_annotation, stack=details[value])
        return RowKey(row.name, row.is_annotation, module="/".join(details[value]) or None)

    return detail, complete


class _FrameReader:
    """Turns name ids of frames, innermost first, into what rows show of them."""

    def __init__(self, trace: Trace, group_by: GroupBy) -> None:
        self._strings = trace.strings
        self._group_by = group_by
        self._shown: dict[int, str | None] = {}

    def parts(self, frames: list[int]) -> tuple[str, ...]:
        """All frames, innermost first; or the modules among them, outermost first."""
        shown = tuple(text for frame in frames if (text := self._text(frame)) is not None)
        return shown if self._group_by is GroupBy.STACK else shown[::-1]

    def _text(self, frame: int) -> str | None:
        if frame not in self._shown:
            name: str = self._strings[frame]
            is_module = name.startswith(_MODULE_FRAME)
            if self._group_by is GroupBy.STACK:
                self._shown[frame] = _ADDRESS.sub("", name)
            else:
                self._shown[frame] = name[len(_MODULE_FRAME) :] if is_module else None
        return self._shown[frame]


def _split_recorded(text: str, group_by: GroupBy, stack_depth: int | None) -> tuple[str, ...]:
    if group_by is GroupBy.STACK:
        text = _ADDRESS.sub("", text)
        return tuple(part for part in text.split(";") if part)[:stack_depth]
    return tuple(part for part in text.split(".") if part)


def _python_paths(trace: Trace) -> tuple[_Paths, npt.NDArray[np.int64]]:
    """All distinct chains of Python frames, and the chain around each slice."""
    slices = trace.slices
    parent = slices.parent
    frames = slices.of_kind(SliceKind.PYTHON)
    paths = _Paths([0], [0])
    path_of = np.zeros(len(slices), np.int64)
    if frames.size == 0:
        return paths, path_of
    is_frame = slices.kind == SliceKind.PYTHON
    above = _nearest_above(parent, is_frame, frames)
    by_depth = np.argsort(slices.depth[frames], kind="stable")
    depths = slices.depth[frames][by_depth]
    cuts = np.flatnonzero(np.diff(depths)) + 1
    for level in np.split(by_depth, cuts):
        outer = np.where(above[level] == frames[level], 0, path_of[above[level]])
        pairs = pair_up(outer, slices.name[frames[level]])
        path_of[frames[level]] = pairs.key.astype(np.int64) + len(paths.parent)
        paths.parent.extend(pairs.first.tolist())
        paths.frame.extend(pairs.second.tolist())
    rest = np.flatnonzero(~is_frame).astype(np.uint32)
    around = _nearest_above(parent, is_frame, rest)
    path_of[rest] = np.where(around == rest, 0, path_of[around])
    return paths, path_of


def _nearest_above(parent: U32, wanted: Bool, ids: U32) -> U32:
    """For each slice the nearest wanted one strictly above it; itself where there is none."""
    found, above = _native.climb(parent, wanted.view(np.uint8), np.ascontiguousarray(parent[ids]))
    has = (found != 0) & (above != ids)
    return np.where(has, above, ids).astype(np.uint32)


def _through_backward(trace: Trace, calls: HostCalls, path_of: I64) -> I64:
    """Give what runs in a backward op the stack of the forward op that it belongs to."""
    links = link_backward(trace)
    if links.backward.size == 0:
        return path_of
    is_backward = np.zeros(path_of.size, np.bool_)
    is_backward[links.backward] = True
    everything = np.arange(path_of.size, dtype=np.uint32)
    found, root = _native.climb(calls.parent, is_backward.view(np.uint8), everything)
    inside = np.flatnonzero((found != 0) & calls.is_call)
    forward = links.forward[np.searchsorted(links.backward, root[inside])]
    through = path_of.copy()
    through[inside] = path_of[forward]
    return through
