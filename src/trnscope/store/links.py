"""Links between slices: flows as written, and the launch and the op behind device work."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from trnscope import _native
from trnscope.model.kinds import DEVICE_WORK, SliceKind
from trnscope.store.batches import FLOW_START, FLOW_STEP
from trnscope.store.column_file import ColumnLayout, MappedTable
from trnscope.store.tables import U8, U32

Columns = dict[str, npt.NDArray[Any]]

_NO_SLICE = 0xFFFFFFFF
_DENSE_LIMIT = 1 << 22
"""Ids are looked up through a table when the largest is below this, or below 8 a slice."""


def pair_flows(ends: Columns, found: U8, slices: U32) -> Columns:
    """Link each step or end to the latest start or step of its flow at or before it.

    An end earlier than every start of its flow (clocks may disagree) is linked from the first
    start. Ends that lie in no slice link nothing.
    """
    order = _in_flow_order(ends, np.flatnonzero(found))
    if order.size == 0:
        return {name: np.empty(0, np.uint32) for name in ("kind", "slice_out", "slice_in")}
    kind, flow_id = ends["kind"][order], ends["flow_id"][order]
    phase = ends["phase"][order]
    new = np.append(True, (kind[1:] != kind[:-1]) | (flow_id[1:] != flow_id[:-1]))
    group = np.cumsum(new) - 1
    index = np.arange(order.size)
    opens = (phase == FLOW_START) | (phase == FLOW_STEP)
    # The latest opening row before each row; valid if it is in the same group.
    before = np.maximum.accumulate(np.where(opens, index, -1))
    before = np.append(-1, before[:-1])
    first_start = np.full(int(group[-1]) + 1, -1)
    starts = np.flatnonzero(phase == FLOW_START)[::-1]
    first_start[group[starts]] = starts
    same = (before >= 0) & (group[np.maximum(before, 0)] == group)
    source = np.where(same, before, first_start[group])
    linked = (phase != FLOW_START) & (source >= 0)
    at = slices[order]
    return {
        "kind": kind[linked],
        "slice_out": at[source[linked]],
        "slice_in": at[linked],
    }


def _in_flow_order(ends: Columns, rows: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    """The rows by kind, flow id, time and phase.

    One stable sort a key, the last key first: what a file holds in order already costs little.
    """
    if rows.size == 0:
        return rows
    ts_ns = ends["ts_ns"][rows]
    moment = (ts_ns - ts_ns.min()) * 4 + ends["phase"][rows]
    rows = rows[np.argsort(moment, kind="stable")]
    rows = rows[np.argsort(ends["flow_id"][rows], kind="stable")]
    return rows[_native.argsort_u32(ends["kind"][rows])]


def _attribute(
    directory: Path, layouts: dict[str, tuple[ColumnLayout, ...]], key: str
) -> tuple[U32, npt.NDArray[Any]]:
    layout = layouts.get(f"attribute.{key}")
    if layout is None:
        return np.empty(0, np.uint32), np.empty(0, np.uint64)
    table = MappedTable(directory / f"attribute.{key}.arrow", layout)
    return table.column("slice"), table.column("value")


def _first_with_value(
    wanted: npt.NDArray[np.bool_], slices: U32, values: npt.NDArray[Any], asked: npt.NDArray[Any]
) -> tuple[npt.NDArray[np.bool_], U32]:
    """For each value asked for: the first wanted slice with it. Value 0 stands for none."""
    keep = wanted[slices] & (values != 0)
    values, slices = values[keep], slices[keep]
    if values.size == 0 or asked.size == 0:
        return np.zeros(asked.size, np.bool_), np.zeros(asked.size, np.uint32)
    top = max(int(values.max()), int(asked.max()))
    if top < _DENSE_LIMIT + 8 * values.size:
        first = np.full(top + 1, _NO_SLICE, np.uint32)
        np.minimum.at(first, values, slices)
        found = first[asked]
        return found != _NO_SLICE, found
    unique, at = np.unique(values, return_index=True)
    has, slice_id = _look_up(unique, slices[at], asked)
    return has & (asked != 0), slice_id


def _look_up(
    keys: npt.NDArray[Any], values: npt.NDArray[Any], asked: npt.NDArray[Any]
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[Any]]:
    """For each key asked for: whether it is among ``keys``, which rise, and its value, else 0."""
    if keys.size == 0:
        return np.zeros(asked.size, np.bool_), np.zeros(asked.size, values.dtype)
    at = np.minimum(np.searchsorted(keys, asked), keys.size - 1)
    has = keys[at] == asked
    return has, np.where(has, values[at], values.dtype.type(0))


def find_launches(
    directory: Path, layouts: dict[str, tuple[ColumnLayout, ...]], flows: Columns
) -> Columns:
    """For all device work: the runtime call behind it, and the op.

    The call is the one with the same correlation id, else the one that a flow comes from.
    Work that has no correlation id at all (a PrivateUse1 device need not give one) is linked
    to the call with its external id. The op is the innermost CPU_OP around the call; without
    a call, or outside of any op, the CPU_OP with the same external id. Id 0 stands for none,
    as Kineto writes it.
    """
    table = MappedTable(directory / "slices.arrow", layouts["slices"])
    kind, parent = table.column("kind"), table.column("parent")
    device = np.flatnonzero(np.isin(kind, DEVICE_WORK)).astype(np.uint32)
    if device.size == 0:
        return _launch_columns(device, *(np.zeros(0, np.uint32) for _ in range(4)))
    is_runtime = kind == SliceKind.RUNTIME
    correlation = _attribute(directory, layouts, "correlation")
    external_id = _attribute(directory, layouts, "external_id")
    has, launch = _by_attribute(correlation, is_runtime, device)
    has, launch = _by_flow_link(flows, is_runtime, device, has, launch)
    uncorrelated = ~has & ~_look_up(*correlation, device)[0]
    if uncorrelated.any():
        found, call = _by_attribute(external_id, is_runtime, device[uncorrelated])
        has[uncorrelated], launch[uncorrelated] = found, call
    is_op = (kind == SliceKind.CPU_OP).astype(np.uint8)
    found_op, op = _native.climb(parent, is_op, launch)
    has_op = has & (found_op != 0)
    by_id, op_by_id = _by_attribute(external_id, is_op != 0, device)
    op = np.where(has_op, op, op_by_id)
    return _launch_columns(device, has, launch, has_op | by_id, op)


def _by_attribute(
    attribute: tuple[U32, npt.NDArray[Any]], wanted: npt.NDArray[np.bool_], device: U32
) -> tuple[npt.NDArray[np.bool_], U32]:
    """For each device slice: the first wanted slice with the same value of the attribute."""
    slices, values = attribute
    given, own_values = _look_up(slices, values, device)
    found, target = _first_with_value(wanted, slices, values, own_values)
    return given & found, np.where(given & found, target, 0).astype(np.uint32)


def _by_flow_link(
    flows: Columns,
    is_runtime: npt.NDArray[np.bool_],
    device: U32,
    has: npt.NDArray[np.bool_],
    launch: U32,
) -> tuple[npt.NDArray[np.bool_], U32]:
    from_runtime = is_runtime[flows["slice_out"]]
    into, first = np.unique(flows["slice_in"][from_runtime], return_index=True)
    found, source = _look_up(into, flows["slice_out"][from_runtime][first], device)
    return has | found, np.where(has, launch, source).astype(np.uint32)


def _launch_columns(device: U32, has: Any, launch: Any, has_op: Any, op: Any) -> Columns:
    return {
        "device_slice": device,
        "has_launch": has.astype(np.uint8),
        "launch_slice": launch.astype(np.uint32),
        "has_op": has_op.astype(np.uint8),
        "op_slice": np.where(has_op != 0, op, 0).astype(np.uint32),
    }
