"""Lists of NeuronCores as the profiler's filters write them: ``0,1,2-5``."""

from __future__ import annotations

import re

from trnscope.sim.neuronx.errors import ProfileArgumentError

_PART = re.compile(r"\s*(\d{1,5})\s*(?:-\s*(\d{1,5})\s*)?")


def parse_cores(text: str) -> frozenset[int]:
    """The cores that a list names; raises :class:`ProfileArgumentError` for anything else."""
    cores: set[int] = set()
    for part in text.split(","):
        match = _PART.fullmatch(part)
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if last < first:
            raise ProfileArgumentError(
                f'no list of NeuronCores: "{text}"', hint='write cores and ranges, as in "0,2-5"'
            )
        cores.update(range(first, last + 1))
    return frozenset(cores)
