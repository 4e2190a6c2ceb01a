"""What is known of how a trace was recorded, beyond what is in it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Recording:
    """Notes that ``trnscope run`` left beside a trace; absent members were not noted."""

    slowdown_ratio: float | None = None
    """How much longer recorded steps took than others of the same run."""
    slowdown_is_clear: bool = False
    """Whether that is beyond what steps vary by themselves."""
    num_cpus: int | None = None
    """Processors that the process could run on."""
    num_threads: int | None = None
    """Threads that one op could use."""
    num_workers: int | None = None
    """Worker processes of its data loaders."""
    world_size: int | None = None
