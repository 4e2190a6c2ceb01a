"""What one recording of the simulated device holds. All times are virtual, in ns.

Nothing in it comes from a real clock, a process id or an address, so the same script gives the
same recording. Threads are numbered in the order in which they first appear.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum


class LaunchKind(IntEnum):
    """What a launch made the device do; the numbers are those of ``csrc/timeline.h``."""

    KERNEL = 0
    """An op, executed as a NEFF of its own."""
    COPY_H2D = 1
    COPY_D2H = 2
    COPY_D2D = 3
    MEMSET = 4
    GRAPH = 5
    """A compiled graph, executed as one NEFF."""
    COLLECTIVE = 6


EXECUTIONS = (LaunchKind.KERNEL, LaunchKind.GRAPH, LaunchKind.MEMSET)
"""What runs as a program on the engines of a core; a fill does too."""


class HostKind(IntEnum):
    """Whose range a host row is."""

    OP = 0
    BACKWARD = 1
    """An op that autograd runs."""
    ANNOTATION = 2
    """A range that the program or a part of torch named."""
    PYTHON = 3
    """A function of Python, or a module's call."""


@dataclass(frozen=True)
class Simulation:
    """What made the times up."""

    hardware: str
    """Name of the hardware model: ``trn2``."""
    version: str
    instance: str
    """Type of instance: ``trn2.3xlarge``."""
    title: str
    """The chip's full name: ``AWS Trainium2``."""
    lnc: int = 1
    """Physical cores that make one logical core, which torch sees as a device."""
    num_devices: int = 1
    memory_bytes: int | None = None
    """HBM of one logical core."""
    launch_call_ns: int | None = None
    """Of the host's time for a launch, what the runtime's call takes: its last part. The rest is
    the framework's dispatch. None: not told apart."""

    @property
    def model(self) -> str:
        """As every output shows it: ``trn2 model v1``."""
        return f"{self.hardware} model v{self.version}"

    @property
    def target(self) -> str:
        """As ``trnscope run --device`` takes it."""
        return f"sim:{self.instance}"


@dataclass(frozen=True)
class CollectiveInfo:
    """A collective as the hardware model sees it."""

    name: str
    """``all_reduce``."""
    num_elements: int
    """Of the whole buffer: the message size."""
    dtype: str
    group_size: int


@dataclass(frozen=True)
class Message:
    """What torch.distributed says of one collective, in the words of a profile of NCCL."""

    call: str
    """``allreduce``, ``_allgather_base``."""
    in_elements: int
    out_elements: int
    dtype: str
    """As torch spells it: ``BFloat16``."""
    group_name: str
    ranks: tuple[int, ...]
    """Of the group, in the whole job."""
    rank: int = 0
    """This process's, in the group."""
    group_description: str = ""
    in_splits: tuple[int, ...] = ()
    out_splits: tuple[int, ...] = ()
    source: int | None = None
    """Of a message from one rank to another; None: none, or any rank."""
    destination: int | None = None
    sequence_number: int | None = None
    """Counts the group's collectives."""


@dataclass(frozen=True)
class Work:
    """What an execution does by the hardware model."""

    flops: int
    hbm_read_bytes: int
    hbm_write_bytes: int


@dataclass(frozen=True)
class Launch:
    """One piece of device work and the host call that enqueued it."""

    sequence_id: int
    """The runtime's own id, beyond 2**53."""
    correlation: int
    """Joins the two rows; unique in a recording."""
    kind: LaunchKind
    name: str
    core: int
    """Logical core, which is the device's index."""
    stream: int
    thread: int
    host_start_ns: int
    """The framework begins to dispatch it."""
    host_end_ns: int
    device_start_ns: int
    device_end_ns: int
    call_start_ns: int | None = None
    """The runtime is called; None: with the dispatch."""
    op: int | None = None
    """Id of the innermost host row that was open."""
    num_bytes: int = 0
    """Bytes that a copy moves or a memset fills."""
    cache_key: str | None = None
    """What tells one NEFF from another: the op with its shapes and types."""
    compile_ns: int = 0
    """Part of the host's time: the compiler, for a new cache key."""
    switch_ns: int = 0
    """Part of the device's time: loading the program, where the core ran another before."""
    on_cpu: bool = False
    """Whether the op fell back to the CPU."""
    collective: CollectiveInfo | None = None
    message: Message | None = None
    """Of a collective."""
    work: Work | None = None
    """None: a copy, a memset or a collective."""
    signature: int | None = None
    """Row in the device's table of signatures."""

    @property
    def call_ns(self) -> tuple[int, int]:
        """Begin and end of the runtime's call."""
        start = self.host_start_ns if self.call_start_ns is None else self.call_start_ns
        return start, self.host_end_ns


Shape = tuple[int, ...] | tuple[tuple[int, ...], ...]
"""Of a tensor, or those of a list of tensors."""


@dataclass(frozen=True)
class Inputs:
    """The arguments of an op, one entry each in all three; empty where it does not apply."""

    shapes: tuple[Shape, ...]
    dtypes: tuple[str, ...]
    values: tuple[str, ...]
    """Scalars and lists of them, as text."""


@dataclass(frozen=True)
class HostRow:
    """One range of a host thread."""

    id: int
    """Unique in a recording and rising in program order; the rows' External id."""
    kind: HostKind
    name: str
    thread: int
    start_ns: int
    end_ns: int
    sequence_number: int | None = None
    """Autograd's number, which joins forward and backward."""
    forward_thread: int | None = None
    inputs: Inputs | None = None
    """Recorded only when asked for."""
    parent: int | None = None
    """Id of the op or annotation around it, which may have begun before the recording."""
    message: Message | None = None
    """Of the row ``record_param_comms``: the collective that it stands for."""


@dataclass(frozen=True)
class WaitRow:
    """The host waited for the device."""

    name: str
    thread: int
    start_ns: int
    end_ns: int
    op: int | None = None


@dataclass(frozen=True)
class MemoryRow:
    """Memory of a device was allocated (positive) or freed (negative)."""

    time_ns: int
    thread: int
    core: int
    address: int
    """A number for the allocation, the same at its free; no real address."""
    num_bytes: int
    total_allocated: int
    total_reserved: int


@dataclass(frozen=True)
class Recording:
    """A stretch of a program in virtual time."""

    simulation: Simulation
    start_ns: int
    end_ns: int
    host: tuple[HostRow, ...] = ()
    launches: tuple[Launch, ...] = ()
    waits: tuple[WaitRow, ...] = ()
    memory: tuple[MemoryRow, ...] = ()
    dropped: dict[int, int] = field(default_factory=dict)
    """By core: executions that did not fit ``max_events_per_nc``."""
    rank: int | None = None
    world_size: int | None = None
    with_shapes: bool = False
    with_memory: bool = False
    with_stack: bool = False

    @property
    def device_ns(self) -> int:
        """Durations of all device work added up."""
        return sum(launch.device_end_ns - launch.device_start_ns for launch in self.launches)
