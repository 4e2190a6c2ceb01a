"""Links between slices: flows as written, and the launch and the op behind device work."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from trnscope import _native
from trnscope.model.kinds import DEVICE_WORK, SliceKind
from trnscope.store.column_file import ColumnLayout, MappedTable
from trnscope.store.tables import U8, U32, U64

Columns = dict[str, npt.NDArray[Any]]


def pair_flows(ends: Columns, found: U8, slices: U32) -> Columns:
    """Link each step or end to the latest start or step of its flow at or before it.

    An end earlier than every start of its flow (clocks may disagree) is linked from the first
    start. Ends that lie in no slice link nothing.
    """
    kind, slice_out, slice_in = _native.pair_flows(
        ends["flow_id"], ends["kind"], ends["phase"], ends["ts_ns"], found, slices
    )
    return {"kind": kind, "slice_out": slice_out, "slice_in": slice_in}


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
    names = ("device_slice", "has_launch", "launch_slice", "has_op", "op_slice")
    columns = _native.find_launches(
        table.column("kind"),
        table.column("parent"),
        _attribute(directory, layouts, "correlation"),
        _attribute(directory, layouts, "external_id"),
        (flows["slice_out"], flows["slice_in"]),
        list(DEVICE_WORK),
        SliceKind.RUNTIME,
        SliceKind.CPU_OP,
    )
    return dict(zip(names, columns, strict=True))


def _attribute(
    directory: Path, layouts: dict[str, tuple[ColumnLayout, ...]], key: str
) -> tuple[U32, U64]:
    layout = layouts.get(f"attribute.{key}")
    if layout is None:
        return np.empty(0, np.uint32), np.empty(0, np.uint64)
    table = MappedTable(directory / f"attribute.{key}.arrow", layout)
    return table.column("slice"), table.column("value")
