"""Whether a trace holds what a rule needs."""

from __future__ import annotations

from trnscope.advisor.context import StepContext
from trnscope.advisor.rule import Need, Rule
from trnscope.advisor.source import has_stacks
from trnscope.model.kinds import SliceKind


def missing_need(rule: Rule, context: StepContext) -> str | None:
    """Why a rule cannot be asked; absent where it can."""
    return next((need.value for need in rule.needs if not _is_met(need, context)), None)


def _is_met(need: Need, context: StepContext) -> bool:
    trace = context.trace
    if need is Need.HOST_OPS:
        return context.main is not None and context.ops().size > 0
    if need is Need.DEVICE_WORK:
        return trace.launches.device_slice.size > 0
    if need is Need.LAUNCHES:
        return bool(trace.launches.has_launch.any())
    if need is Need.COLLECTIVES:
        return context.device(SliceKind.COLLECTIVE).size > 0
    if need is Need.SHAPES:
        return trace.attribute("input_dims") is not None
    if need is Need.STACKS:
        return has_stacks(trace)
    if need is Need.CAPTURE_RECORD:
        return context.recording is not None
    return context.window.has_steps
