"""The row of Metadata: the simulated machine, and that it is simulated."""

from __future__ import annotations

from typing import Any

from trnscope.sim.explorer_tables.columns import SCHEMA_VERSION
from trnscope.sim.explorer_tables.rows import Machine


def metadata_row(
    machine: Machine, name: str, first_ns: int, last_ns: int, core: int | None
) -> dict[str, Any]:
    """The row of a profile. Times are virtual: they count from the start of the program."""
    clock = machine.clock_ghz
    return {
        "profile_schema_version": SCHEMA_VERSION,
        "ntff_version": 0,
        "num_physical_cores": machine.physical_cores,
        "vnc_enabled": machine.physical_cores > 1,
        "first_hw_timestamp": first_ns,
        "last_hw_timestamp": last_ns,
        "first_ts": f"{first_ns} ns (virtual)",
        "last_ts": f"{last_ns} ns (virtual)",
        "dma_ddr_bandwidth": machine.dma_bytes_per_s,
        "num_dma_engines_per_neuroncore": machine.dma_engines,
        "hbm_ddr_bandwidth": machine.hbm_bytes_per_s,
        "tensor_engine_num_rows": machine.tensor_rows,
        "tensor_engine_num_cols": machine.tensor_columns,
        "tensor_engine_clock_freq": clock["tensor"],
        "vector_engine_clock_freq": clock["vector"],
        "vector_engine_num_channels": machine.num_lanes,
        "scalar_engine_clock_freq": clock["scalar"],
        "scalar_engine_num_channels": machine.num_lanes,
        "gpsimd_engine_clock_freq": clock["gpsimd"],
        "gpsimd_engine_num_channels": machine.num_lanes,
        "neuroncore_clock_freq": clock["scalar"],
        "ticks_per_nanosec": 1,
        "instance_type": machine.instance_type,
        "explorer_version": machine.model,
        "neuroncore_idx": core,
        "profile_name": name,
        "is_simulation": True,
    }
