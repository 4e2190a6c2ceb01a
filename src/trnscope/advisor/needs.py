"""Whether a trace holds what a rule needs."""

from __future__ import annotations

from collections.abc import Callable

from trnscope.advisor.context import StepContext
from trnscope.advisor.rule import Need, Rule
from trnscope.advisor.source import has_stacks
from trnscope.model.kinds import INSIDE_DEVICE, DeviceKind, SliceKind
from trnscope.store.reader import Trace


def missing_need(rule: Rule, context: StepContext) -> str | None:
    """Why a rule cannot be asked; absent where it can."""
    return next((need.value for need in rule.needs if not _is_met(need, context)), None)


def _is_met(need: Need, context: StepContext) -> bool:
    return _MET[need](context)


def _has_launches(context: StepContext) -> bool:
    return bool(context.trace.launches.has_launch.any())


def _has_sizes(context: StepContext) -> bool:
    known = context.trace.attribute("in_nelems")
    return known is not None and bool(known.of(context.device(SliceKind.COLLECTIVE))[0].any())


def has_device_of(trace: Trace, kind: DeviceKind) -> bool:
    """Whether a track of the trace is of such a device."""
    devices = (track.device for track in trace.tracks)
    return any(device is not None and device.kind is kind for device in devices)


_MET: dict[Need, Callable[[StepContext], bool]] = {
    Need.HOST_OPS: lambda one: one.main is not None and one.ops().size > 0,
    Need.DEVICE_WORK: lambda one: one.trace.launches.device_slice.size > 0,
    Need.LAUNCHES: _has_launches,
    Need.COLLECTIVES: lambda one: one.device(SliceKind.COLLECTIVE).size > 0,
    Need.MESSAGES: _has_sizes,
    Need.SHAPES: lambda one: one.trace.attribute("input_dims") is not None,
    Need.STACKS: lambda one: has_stacks(one.trace),
    Need.NEURON: lambda one: has_device_of(one.trace, DeviceKind.NEURON),
    Need.ENGINES: lambda one: any(track.kind in INSIDE_DEVICE for track in one.trace.tracks),
    Need.GRIDS: lambda one: one.trace.attribute("grid") is not None,
    Need.MODEL_CALLS: lambda one: has_stacks(one.trace) or _has_launches(one),
    Need.REAL_HOST: lambda one: not one.trace.source.is_virtual,
    Need.CAPTURE_RECORD: lambda one: one.recording is not None,
    Need.STEPS: lambda one: one.window.has_steps,
}
"""How each is met."""
