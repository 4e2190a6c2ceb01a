"""The module ``torch.neuron``: the device's functions as a script calls them.

Times that it gives are virtual: they follow the cost model, not the clock on the wall.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch

from trnscope.sim.activation import active_device

DeviceLike = torch.device | int | str | None

_initialized = True
"""torch.utils.checkpoint looks for it before it keeps the generator's state."""

_BYTES = ("allocated_bytes", "reserved_bytes", "active_bytes")


@dataclass(frozen=True)
class DeviceProperties:
    """What is known of a core."""

    name: str
    total_memory: int
    """Bytes of HBM of the logical core."""


def _extension() -> Any:
    return active_device().extension


def _index(device: DeviceLike = None) -> int:
    if device is None:
        return current_device()
    if isinstance(device, int):
        return device
    asked = torch.device(device)
    if asked.type != "neuron":
        raise ValueError(f"expected a neuron device, got {asked}")
    return current_device() if asked.index is None else asked.index


def is_available() -> bool:
    """Whether this process has the device."""
    return not _is_in_bad_fork()


def is_initialized() -> bool:
    """Whether the device is ready; the simulated one is, once activated."""
    return not _is_in_bad_fork()


def _is_in_bad_fork() -> bool:
    return bool(_extension().is_in_bad_fork())


def init() -> None:
    """Raise where the device cannot be used: in a forked process."""
    _lazy_init()


def _lazy_init() -> None:
    if _is_in_bad_fork():
        raise RuntimeError(
            "Cannot re-initialize neuron in a forked process; use the 'spawn' start method"
        )


def device_count() -> int:
    """Simulated logical cores."""
    return int(_extension().num_cores())


def current_device() -> int:
    """The core that ``"neuron"`` means on this thread."""
    return int(_extension().current_core())


def set_device(device: DeviceLike) -> None:
    """Make a core the current one of this thread."""
    _extension().set_current_core(_index(device))


def _exchange_device(device: int) -> int:
    before = current_device()
    if device >= 0:
        _extension().set_current_core(device)
    return before


_maybe_exchange_device = _exchange_device


class device:
    """Context in which another core is the current one."""

    def __init__(self, device: DeviceLike) -> None:
        self._index = _index(device)
        self._before = -1

    def __enter__(self) -> None:
        self._before = _exchange_device(self._index)

    def __exit__(self, *_: object) -> None:
        _exchange_device(self._before)


def get_device_name(device: DeviceLike = None) -> str:
    """The chip's name, and that it is simulated."""
    del device
    return f"{active_device().model.core.title} (simulated)"


def get_device_properties(device: DeviceLike = None) -> DeviceProperties:
    """Name and memory of a core."""
    return DeviceProperties(get_device_name(device), int(_extension().capacity_bytes()))


def get_device_capability(device: DeviceLike = None) -> dict[str, Any]:
    """What :func:`torch.accelerator.get_device_capability` gives."""
    del device
    return dict(torch.accelerator.get_device_capability())


def synchronize(device: DeviceLike = None) -> None:
    """Wait for a core: the numbers are computed, and virtual time passes to the end of its work."""
    _extension().synchronize(_index(device))


class Stream(torch.Stream):
    """A queue of work on a core."""

    def __new__(cls, device: DeviceLike = None, priority: int = 0, **others: Any) -> Stream:
        """A new stream of a core."""
        if others:
            return super().__new__(cls, **others)
        return super().__new__(cls, torch.device("neuron", _index(device)), priority=priority)


class Event:
    """A mark in a stream; ``elapsed_time`` between two is virtual time in ms.

    What is made is a :class:`torch.Event`: torch compares events of that very class only.
    """

    def __new__(  # type: ignore[misc]
        cls, enable_timing: bool = True, blocking: bool = False, interprocess: bool = False
    ) -> torch.Event:
        """A new event of the current core."""
        return torch.Event(
            torch.device("neuron", current_device()),
            enable_timing=enable_timing,
            blocking=blocking,
            interprocess=interprocess,
        )


def current_stream(device: DeviceLike = None) -> torch.Stream:
    """The stream that ops of this thread go to."""
    return torch.accelerator.current_stream(torch.device("neuron", _index(device)))


def default_stream(device: DeviceLike = None) -> torch.Stream:
    """The stream that a core starts with."""
    return torch.Stream(stream_id=0, device_index=_index(device), device_type=_DEVICE_TYPE)


def set_stream(stream: torch.Stream) -> None:
    """Make a stream the current one of its core."""
    torch.accelerator.set_stream(stream)


@contextmanager
def stream(stream: torch.Stream | None) -> Iterator[None]:
    """Context in which another stream is the current one."""
    if stream is None:
        yield
        return
    before = current_stream(stream.device)
    core = current_device()
    torch.accelerator.set_stream(stream)
    try:
        yield
    finally:
        torch.accelerator.set_stream(before)
        _exchange_device(core)


_DEVICE_TYPE = 20
"""PrivateUse1 in torch's enumeration of devices."""


def memory_stats(device: DeviceLike = None) -> dict[str, int]:
    """Statistics of a core's memory, by the names of TorchNeuron."""
    stats = _extension().memory_stats(_index(device))
    result: dict[str, int] = {}
    for kind in _BYTES:
        for key in ("current", "peak", "allocated", "freed"):
            result[f"{kind}.{key}"] = 0 if kind == "reserved_bytes" else stats[key]
    return result | {
        "num_alloc_retries": 0,
        "num_ooms": stats["num_ooms"],
        "num_tensor_frees": stats["num_frees"],
        "allocation_requests": stats["num_allocations"],
    }


def memory_allocated(device: DeviceLike = None) -> int:
    """Bytes in use."""
    return int(_extension().memory_stats(_index(device))["current"])


def max_memory_allocated(device: DeviceLike = None) -> int:
    """Most bytes in use since the last reset."""
    return int(_extension().memory_stats(_index(device))["peak"])


def memory_reserved(device: DeviceLike = None) -> int:
    """Bytes kept beyond those in use: none, the simulated allocator keeps nothing."""
    del device
    return 0


max_memory_reserved = memory_reserved


def mem_get_info(device: DeviceLike = None) -> tuple[int, int]:
    """Free and total bytes."""
    total = int(_extension().capacity_bytes())
    return total - memory_allocated(device), total


def reset_peak_memory_stats(device: DeviceLike = None) -> None:
    """Let the peak start from what is in use now."""
    _extension().reset_peak(_index(device))


def reset_accumulated_memory_stats(device: DeviceLike = None) -> None:
    """Let the sums start at zero."""
    _extension().reset_accumulated(_index(device))


def memory_summary(device: DeviceLike = None) -> str:
    """Statistics as text."""
    index = _index(device)
    lines = [f"neuron:{index} ({get_device_name(index)}), bytes"]
    lines += [f"  {name:28}{value:>20,}" for name, value in memory_stats(index).items()]
    return "\n".join(lines)


def empty_cache() -> None:
    """Nothing: the simulated allocator keeps no memory back."""


def default_generator(device: DeviceLike = None) -> torch.Generator:
    """The generator that random ops use."""
    generator: torch.Generator = _extension().default_generator(_index(device))
    return generator


def manual_seed(seed: int) -> None:
    """Seed the current core's generator."""
    default_generator().manual_seed(int(seed))


def manual_seed_all(seed: int) -> None:
    """Seed the generators of all cores."""
    for index in range(device_count()):
        default_generator(index).manual_seed(int(seed))


def seed() -> None:
    """Seed the current core's generator at random."""
    default_generator().seed()


def seed_all() -> None:
    """Seed the generators of all cores at random."""
    for index in range(device_count()):
        default_generator(index).seed()


def initial_seed() -> int:
    """The seed of the current core's generator."""
    return default_generator().initial_seed()


def get_rng_state(device: DeviceLike = "neuron") -> torch.Tensor:
    """The state of a core's generator."""
    return default_generator(device).get_state()


def get_rng_state_all() -> list[torch.Tensor]:
    """The states of all generators."""
    return [get_rng_state(index) for index in range(device_count())]


def set_rng_state(new_state: torch.Tensor, device: DeviceLike = "neuron") -> None:
    """Give a core's generator a state."""
    default_generator(device).set_state(new_state)


def set_rng_state_all(new_states: Iterable[torch.Tensor]) -> None:
    """Give all generators their states."""
    for index, state in enumerate(new_states):
        set_rng_state(state, index)


def is_bf16_supported() -> bool:
    """Every NeuronCore computes in bfloat16."""
    return True


def get_amp_supported_dtype() -> list[torch.dtype]:
    """Types for :func:`torch.autocast`."""
    return [torch.bfloat16, torch.float16]


def _sleep(nanoseconds: int) -> None:
    """Let the host do nothing for so long, in virtual time."""
    _extension().advance_host(int(nanoseconds))


def get_dynamo_metrics() -> dict[str, int]:
    """Compiled graphs and their executions."""
    graphs = [row for row in _extension().executions() if row[2] == _GRAPH_KIND]
    return {"num_graphs": len(graphs), "num_graph_executions": sum(row[3] for row in graphs)}


_GRAPH_KIND = 5
