"""Which op each piece of time belongs to, and the FLOPs and bytes of that op.

Ops nest: ``aten::linear`` calls ``aten::addmm``, which launches the kernel. Work is counted at
the outermost op that has a formula, with all the time under it, so that no product is counted
twice and no time is lost. Ops that only pass work on (``aten::linear``) count nothing, unless
nothing under them has a formula. Time that no op with a formula covers keeps the innermost op
around its launch, uncounted.

Time is device time where the trace holds device work, else host time of the ops.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from trnscope import _native
from trnscope.analysis.flops import (
    Uncounted,
    Work,
    count,
    has_formula,
    is_without_work,
    is_wrapper,
    parse_call,
)
from trnscope.analysis.grouping import I64, U32, group_sum, pair_up
from trnscope.model.kinds import SliceKind
from trnscope.store.reader import Trace
from trnscope.store.tables import Bool

_REDUCED_FLOAT32 = re.compile(r"tf32|xf32|s1688(?!.*fp?16)", re.IGNORECASE)
"""Kernels that multiply float32 at reduced precision, by the names that libraries give them."""
_OVER_A_LINK = re.compile(r"HtoD|DtoH|h2d|d2h|Host|PtoP|Peer|p2p", re.IGNORECASE)
"""Copies that leave the device, as Kineto, ROCm and Neuron name them or their kind."""

NO_SHAPES = Uncounted("no shapes were recorded for it")
UNREADABLE = Uncounted("its recorded shapes make no sense")


@dataclass(frozen=True)
class Signature:
    """Calls of one op with the same arguments."""

    name: str
    input_shapes: str | None
    """JSON, as recorded."""
    input_types: str | None
    work: Work | Uncounted


@dataclass(frozen=True, eq=False, repr=False)
class OpWork:
    """The ops of one trace that time is charged to; one row a call. Times in ns."""

    call: U32
    """Slice ids, rising."""
    time_ns: I64
    """Device time of its kernels and copies on the device; host time without a device."""
    signature: I64
    """Index into ``signatures``."""
    reduced_float32: Bool
    """Whether a kernel of it multiplied float32 at reduced precision, by its name."""
    signatures: tuple[Signature, ...]
    has_device: bool
    communication_ns: int
    """Collectives: the network binds them, not the memory."""
    transfer_ns: int
    """Copies to or from the host or another device: the link binds them."""
    unattributed_ns: int
    """Other device work without an op: its launch is not in the trace, or no op made it."""
    overhead_ns: int
    """Host time of ops that only call others, make views or allocate; 0 with a device."""
    has_shapes: bool
    """Whether any op has its shapes recorded."""


def op_work(trace: Trace) -> OpWork:
    """The ops of one trace, their time, and what they did in it."""
    counted = _counted_ops(trace)
    has_device = trace.launches.device_slice.size > 0
    times = _device_times(trace, counted) if has_device else _host_times(trace, counted)
    signature, signatures = _signatures(trace, times.call, counted)
    return OpWork(
        call=times.call,
        time_ns=times.time_ns,
        signature=signature,
        reduced_float32=times.reduced_float32,
        signatures=signatures,
        has_device=has_device,
        communication_ns=times.communication_ns,
        transfer_ns=times.transfer_ns,
        unattributed_ns=times.unattributed_ns,
        overhead_ns=times.overhead_ns,
        has_shapes=trace.attribute("input_dims") is not None,
    )


@dataclass(frozen=True, eq=False, repr=False)
class _Times:
    call: U32
    time_ns: I64
    reduced_float32: Bool
    communication_ns: int = 0
    transfer_ns: int = 0
    unattributed_ns: int = 0
    overhead_ns: int = 0


def _counted_ops(trace: Trace) -> Bool:
    """For each slice whether it is the outermost op with a formula."""
    slices = trace.slices
    is_formula, is_wrapping = _by_name(trace)
    is_op = slices.kind == SliceKind.CPU_OP
    counted = _outermost(slices.parent, is_op & is_formula[slices.name])
    wrappers = is_op & is_wrapping[slices.name]
    if wrappers.any():
        empty = wrappers & ~_has_inside(slices.parent, counted, wrappers)
        counted |= _outermost(slices.parent, empty & ~_is_inside(slices.parent, counted))
    return counted


def _by_name(trace: Trace) -> tuple[Bool, Bool]:
    """For each string whether it names an op with a formula of its own, or a wrapper."""
    is_formula = np.zeros(len(trace.strings), np.bool_)
    is_wrapping = np.zeros(len(trace.strings), np.bool_)
    names = np.unique(trace.slices.name[trace.slices.of_kind(SliceKind.CPU_OP)]).tolist()
    for number, name in zip(names, trace.strings.take(names), strict=True):
        if has_formula(name):
            (is_wrapping if is_wrapper(name) else is_formula)[number] = True
    return is_formula, is_wrapping


def _climb(parent: U32, wanted: Bool, ids: U32) -> tuple[Bool, U32]:
    """For each slice the nearest wanted one at or above it: (found, slices)."""
    found, slices = _native.climb(
        np.ascontiguousarray(parent), wanted.view(np.uint8), np.ascontiguousarray(ids, np.uint32)
    )
    return found != 0, slices


def _above(parent: U32, wanted: Bool, ids: U32) -> tuple[Bool, U32]:
    """The same, strictly above."""
    found, slices = _climb(parent, wanted, parent[ids])
    return found & (slices != ids), slices


def _outermost(parent: U32, wanted: Bool) -> Bool:
    """The wanted slices with no wanted one above them."""
    ids = np.flatnonzero(wanted).astype(np.uint32)
    outer = np.zeros(wanted.size, np.bool_)
    outer[ids[~_above(parent, wanted, ids)[0]]] = True
    return outer


def _is_inside(parent: U32, counted: Bool) -> Bool:
    """For each slice whether a counted one is above it."""
    everything = np.arange(parent.size, dtype=np.uint32)
    return _above(parent, counted, everything)[0]


def _has_inside(parent: U32, counted: Bool, wrappers: Bool) -> Bool:
    """For each slice whether it is a wrapper with a counted slice somewhere under it."""
    has = np.zeros(parent.size, np.bool_)
    ids = np.flatnonzero(counted).astype(np.uint32)
    while ids.size:
        found, slices = _above(parent, wrappers, ids)
        ids = np.unique(slices[found])
        ids = ids[~has[ids]]
        has[ids] = True
    return has


# Time on the device ------------------------------------------------------------------------


def _device_times(trace: Trace, counted: Bool) -> _Times:
    slices, links = trace.slices, trace.launches
    work = links.device_slice
    dur_ns = slices.dur_ns[work]
    is_communication = slices.kind[work] == SliceKind.COLLECTIVE
    is_transfer = (slices.kind[work] == SliceKind.MEMCPY) & _goes_over_a_link(trace)
    is_rest = ~is_communication & ~is_transfer
    owned = is_rest & links.has_op
    owner = _owners(trace, counted, links.op_slice[owned])
    call, place = np.unique(owner, return_inverse=True)
    reduced = np.zeros(call.size, np.bool_)
    is_reduced = _named(trace, _REDUCED_FLOAT32)[slices.name[work[owned]]]
    reduced[place[is_reduced]] = True
    return _Times(
        call=call.astype(np.uint32),
        time_ns=group_sum(place, dur_ns[owned], call.size)[1],
        reduced_float32=reduced,
        communication_ns=int(dur_ns[is_communication].sum()),
        transfer_ns=int(dur_ns[is_transfer].sum()),
        unattributed_ns=int(dur_ns[is_rest & ~links.has_op].sum()),
    )


def _goes_over_a_link(trace: Trace) -> Bool:
    """For each piece of device work whether it says so by its kind of copy, or else its name."""
    work = trace.launches.device_slice
    found = _named(trace, _OVER_A_LINK)[trace.slices.name[work]]
    kinds = trace.attribute("memcpy_kind")
    if kinds is None:
        return found
    has, kind = kinds.of(work)
    texts = {int(each): trace.strings[int(each)] for each in np.unique(kind[has])}
    over = [number for number, text in texts.items() if _OVER_A_LINK.search(text)]
    return np.where(has, np.isin(kind, over), found)


def _owners(trace: Trace, counted: Bool, ops: U32) -> U32:
    """The counted op at or above each op; without one the op itself."""
    found, owners = _climb(trace.slices.parent, counted, ops)
    return np.where(found, owners, ops).astype(np.uint32)


def _named(trace: Trace, pattern: re.Pattern[str]) -> Bool:
    """For each string whether it is a name of device work that a pattern is found in."""
    matches = np.zeros(len(trace.strings), np.bool_)
    names = np.unique(trace.slices.name[trace.launches.device_slice]).tolist()
    for number, name in zip(names, trace.strings.take(names), strict=True):
        matches[number] = pattern.search(name) is not None
    return matches


# Time on the host --------------------------------------------------------------------------


def _host_times(trace: Trace, counted: Bool) -> _Times:
    """Counted ops have all the time under them, others what they spend themselves."""
    slices = trace.slices
    is_op = slices.kind == SliceKind.CPU_OP
    rest = is_op & ~counted & ~_is_inside(slices.parent, counted)
    overhead = rest & (_has_ops(slices.parent, is_op) | _without_work(trace)[slices.name])
    calls = np.flatnonzero(counted | (rest & ~overhead)).astype(np.uint32)
    time_ns = np.where(counted[calls], slices.dur_ns[calls], slices.op_self_ns[calls])
    overhead_ns = int(slices.op_self_ns[overhead].sum())
    return _Times(calls, time_ns, np.zeros(calls.size, np.bool_), overhead_ns=overhead_ns)


def _has_ops(parent: U32, is_op: Bool) -> Bool:
    """For each slice whether it is an op that calls another."""
    found, callers = _above(parent, is_op, np.flatnonzero(is_op).astype(np.uint32))
    calls_others = np.zeros(is_op.size, np.bool_)
    calls_others[callers[found]] = True
    return calls_others


def _without_work(trace: Trace) -> Bool:
    """For each string whether it names an op that moves and computes nothing."""
    names = np.unique(trace.slices.name[trace.slices.of_kind(SliceKind.CPU_OP)]).tolist()
    matches = np.zeros(len(trace.strings), np.bool_)
    for number, name in zip(names, trace.strings.take(names), strict=True):
        matches[number] = is_without_work(name)
    return matches


# What the calls did ------------------------------------------------------------------------

_TEXTS = ("input_dims", "input_types", "input_strides", "concrete_inputs")


def _signatures(trace: Trace, calls: U32, counted: Bool) -> tuple[I64, tuple[Signature, ...]]:
    """For each call the number of its signature, and the signatures."""
    columns = [trace.slices.name[calls].astype(np.int64)]
    columns += [_text_numbers(trace, key, calls) for key in _TEXTS]
    columns.append(counted[calls].astype(np.int64))
    number = columns[0]
    for column in columns[1:]:
        number = pair_up(number, column).key.astype(np.int64)
    _, first, number = np.unique(number, return_index=True, return_inverse=True)
    rows = np.stack(columns, axis=1)[first].tolist()
    return number, tuple(_signature(trace, row) for row in rows)


def _text_numbers(trace: Trace, key: str, calls: U32) -> I64:
    """For each call 0, or 1 + the string id of one of its arguments' texts."""
    attribute = trace.attribute(key)
    if attribute is None:
        return np.zeros(calls.size, np.int64)
    has, value = attribute.of(calls)
    return np.where(has, value.astype(np.int64) + 1, 0)


def _signature(trace: Trace, row: list[int]) -> Signature:
    name, *texts, is_counted = row
    dims, types, strides, values = (trace.strings[at - 1] if at else None for at in texts)
    op: str = trace.strings[name]
    work = _work(op, dims, types, strides, values, bool(is_counted))
    return Signature(op, dims, types, work)


@lru_cache(maxsize=1 << 14)
def _work(
    name: str,
    dims: str | None,
    types: str | None,
    strides: str | None,
    values: str | None,
    is_counted: bool,
) -> Work | Uncounted:
    if not is_counted:
        return Uncounted(_reason(name))
    if dims is None:
        return NO_SHAPES
    call = parse_call(name, dims, types, strides, values)
    return UNREADABLE if call is None else count(call)


def _reason(name: str) -> str:
    """Why an op without a formula has none."""
    if name.startswith("triton_"):
        return "a generated kernel: its name and arguments do not tell its arithmetic"
    return "no formula for this op"
