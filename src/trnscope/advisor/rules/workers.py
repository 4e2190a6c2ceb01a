"""How much of the loading worker processes would hide, and how many of them a machine has room
for."""

from __future__ import annotations

from trnscope.advisor.context import StepContext

WORKERS = 4
"""Workers that are advised where nothing speaks against it: what torch's own examples use most.
Ours."""


def advised_workers(context: StepContext) -> int:
    """As many, but no more than the machine has processors for, where that was noted."""
    cpus = num_cpus(context)
    return WORKERS if cpus is None else max(1, min(WORKERS, cpus))


def num_cpus(context: StepContext) -> int | None:
    """Processors for one process of the job; absent where they were not noted."""
    recording = context.recording
    if recording is None or recording.num_cpus is None:
        return None
    return max(1, recording.num_cpus // (recording.world_size or 1))


def hidden_share(context: StepContext, loading_ns: int, workers: int) -> float:
    """The share of host work per step that so many workers would hide behind the rest of it.

    With n workers a batch takes 1/n of its time, and all work together takes no less than its
    share of the processors.
    """
    rest_ns = max(0, context.step_ns - loading_ns)
    cpus = num_cpus(context)
    least_ns = 0 if cpus is None else (loading_ns + rest_ns) // cpus
    left_ns = max(0, max(loading_ns // workers, least_ns) - rest_ns)
    return 1.0 - left_ns / max(loading_ns, 1)
