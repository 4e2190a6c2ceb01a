"""The "neuron" backend of ``torch.distributed``: gloo carries the numbers, the model the time.

Every rank has a virtual clock of its own: a collective takes the model's time on each, and the
ranks do not wait for one another in virtual time.
"""

from __future__ import annotations

from typing import Any

import torch.distributed

from trnscope.sim.activation import active_device

NAME = "neuron"


def register() -> None:
    """Let ``init_process_group`` find it; nothing where torch has no distributed package."""
    distributed: Any = torch.distributed
    if not distributed.is_available() or hasattr(distributed.Backend, NAME.upper()):
        return
    distributed.Backend.register_backend(NAME, _create, extended_api=True, devices=[NAME])


def _create(group: Any, options: Any) -> Any:
    """One process group's backend."""
    del options
    distributed: Any = torch.distributed
    if not distributed.is_gloo_available():
        raise RuntimeError("the neuron backend needs gloo, and this torch was built without it")
    extension = active_device().extension
    extension.bind_process_group()
    gloo = distributed.ProcessGroupGloo(
        group.store, group.group_rank, group.group_size, timeout=group.timeout
    )
    return extension.ProcessGroupNeuron(gloo, list(group.global_ranks_in_group))
