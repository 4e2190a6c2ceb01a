"""CPU time of a step of each program, without recording: prints ``{"program": ns}``.

All programs take turns in one process. CPU time, and the lower quartile of the steps, because
other programs run on the machine and slow some steps down.
"""

from __future__ import annotations

import json
import time
from typing import Any

import numpy as np
import torch

from benchmarks.doctor import program

ROUNDS = 3
STEPS = 24
WARM_UP = 4


class TimedAdamW(torch.optim.AdamW):
    """Notes the process's CPU time whenever it steps."""

    ends: list[int] = []  # noqa: RUF012 (shared on purpose: one optimizer at a time)

    def step(self, *args: Any, **kwargs: Any) -> Any:
        """As the optimizer does."""
        TimedAdamW.ends.append(time.process_time_ns())
        return super().step(*args, **kwargs)


def steps_of(fault: str | None) -> list[int]:
    """CPU time of each step after the first ones, ns."""
    TimedAdamW.ends.clear()
    program.train(fault, STEPS)
    return np.diff(TimedAdamW.ends[WARM_UP:]).tolist()


def main() -> None:
    """Time all programs, in turns."""
    torch.optim.AdamW = TimedAdamW  # type: ignore[misc]
    times: dict[str, list[int]] = {fault or "healthy": [] for fault in (None, *program.FAULTS)}
    for _ in range(ROUNDS):
        for name, known in times.items():
            known += steps_of(None if name == "healthy" else name)
    print(json.dumps({name: int(np.percentile(known, 25)) for name, known in times.items()}))


if __name__ == "__main__":
    main()
