"""What the tables are made from. Times are ns; those inside a course count from its begin."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Machine:
    """The simulated core, and the model that its times come from."""

    instance_type: str
    model: str
    """Name and version of the cost model, as every output shows it."""
    physical_cores: int
    """In a logical core."""
    clock_ghz: Mapping[str, float]
    """By engine."""
    tensor_rows: int
    tensor_columns: int
    num_lanes: int
    """Of the vector, scalar and gpsimd engines."""
    dma_engines: int
    """Of a physical core."""
    dma_bytes_per_s: float
    """Of a physical core, at most."""
    hbm_bytes_per_s: float
    """Of the chip, at most."""
    hbm_share_bytes_per_s: float
    """Of a logical core: its part of the chip's."""
    hbm_bytes: int
    """Of a logical core."""
    sbuf_bytes: int
    """Of a physical core."""
    psum_bytes: int
    peak_bf16_flops: float
    """Of a physical core, per second."""


@dataclass(frozen=True)
class InstructionRow:
    """An instruction of an engine."""

    engine: str
    opcode: str
    start_ns: int
    duration_ns: int
    operands: str = ""
    flops: int = 0
    adjusted_flops: int = 0
    """Weighed by type to compare with the BF16 peak."""
    elements: int = 0
    """Elements that it works on, over all lanes."""
    wait_ns: int = 0
    """For what it depends on, since its engine was free."""
    is_transpose: bool = False


@dataclass(frozen=True)
class TransferRow:
    """A DMA transfer."""

    name: str
    direction: str
    """``load`` from HBM, ``store`` to HBM, ``move`` within it."""
    queue: str
    start_ns: int
    duration_ns: int
    num_bytes: int
    descriptor_bytes: int
    is_software: bool = False
    """Its descriptors are made while the program runs."""
    is_transpose: bool = False


@dataclass(frozen=True)
class Dependency:
    """Row ``after`` waits for row ``before``: places in a course's instructions or transfers."""

    before: int
    before_is_transfer: bool
    after: int
    after_is_transfer: bool
    gap_ns: int


@dataclass(frozen=True)
class MemoryLevel:
    """Bytes in use on the chip from a time on."""

    time_ns: int
    sbuf_bytes: int
    psum_bytes: int


@dataclass(frozen=True)
class Totals:
    """Exact sums over all of a course, also over what is not listed; of one physical core."""

    engine_ns: dict[str, int]
    """Busy time by engine, and of ``dma``."""
    instructions: Mapping[str, int]
    """Instructions by engine."""
    transfers: int = 0
    flops: int = 0
    adjusted_flops: int = 0
    transpose_flops: int = 0
    adjusted_transpose_flops: int = 0
    hbm_read_bytes: int = 0
    hbm_write_bytes: int = 0
    matmuls: int = 0


@dataclass(frozen=True, eq=False)
class Course:
    """How a program runs on one physical core, from its first to its last instruction."""

    name: str
    duration_ns: int
    instructions: tuple[InstructionRow, ...]
    transfers: tuple[TransferRow, ...]
    totals: Totals
    memory: tuple[MemoryLevel, ...] = ()
    dependencies: tuple[Dependency, ...] = ()
    num_left_out: int = 0
    """Instructions and transfers of long loops that are not listed."""


@dataclass(frozen=True)
class DeviceExecution:
    """One execution of a program on a logical core."""

    core: int
    start_ns: int
    end_ns: int
    program: str
    """Name of the NEFF."""
    op: str
    """The framework's op, or the compiled graph."""
    course: Course | None
    """What ran inside; null for copies and where it is not known."""
    model_id: int | None = None
    event_id: int | None = None
    """Row of the system profile."""


@dataclass(frozen=True)
class CollectiveRow:
    """One collective on a logical core."""

    core: int
    start_ns: int
    end_ns: int
    operation: str
    num_elements: int
    dtype: str
    num_bytes: int
    """Of the whole buffer: the message size."""
    num_ranks: int
    group: tuple[int, ...] | None = None
    """The ranks, as the whole job counts them; None: not known."""
    input_bytes: int | None = None
    """What this rank gives."""
    output_bytes: int | None = None
    """What this rank gets."""
    stream: int = 0
    trigger_ns: int | None = None
    """When the host enqueued it."""


@dataclass(frozen=True)
class TensorRow:
    """A value that a program reads or writes."""

    program: str
    name: str
    role: str
    """``IN``, ``OUT`` or ``WEIGHT``."""
    shape: tuple[int, ...] | None = None
    num_bytes: int | None = None


@dataclass(frozen=True)
class SystemRow:
    """One event of the system profile."""

    id: int
    name: str
    source: str
    """``framework``, ``neuron_rt`` or ``neuron_hw``."""
    start_ns: int
    end_ns: int
    process_id: int
    thread_id: int
    core: int | None = None
    physical_core: int | None = None
    worker: int | None = None
    flow_ids: tuple[int, ...] = ()
    stream: int | None = None
    attributes: Mapping[str, int | float | str | None] = field(default_factory=dict)


@dataclass(frozen=True)
class CpuRow:
    """How busy a processor of the host was."""

    time_ns: int
    cpu: str
    busy_ratio: float


@dataclass(frozen=True)
class HostMemoryRow:
    """Memory of the host in use."""

    time_ns: int
    used_bytes: int
    total_bytes: int


@dataclass(frozen=True)
class WarningRow:
    """What a reader of the profile should know."""

    message: str
    category: str
