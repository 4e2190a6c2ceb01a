"""Columns of the table of figures over a whole device profile, after schema 7.4.0.

A ``*_percent`` there is a fraction from 0 to 1, as in the summaries that Neuron Explorer prints.
"""

from __future__ import annotations

from trnscope.sim.explorer_tables.columns import Table, table

_COLUMNS = """
total_time float s
neuroncore_cycle_count int64 cycles
model_flops int64 flops
hardware_flops int64 flops
transpose_flops int64 flops
adjusted_hardware_flops int64 flops
adjusted_transpose_flops int64 flops
mm_arithmetic_intensity float -
peak_flops_bandwidth_ratio float -
trace_count int64 -
event_count int64 -
total_row_count int64 -
dma_active_cycles int64 cycles
dma_active_time float s
dma_active_time_percent float %
static_dma_active_time float s
dynamic_dma_active_time_percent float %
static_dma_active_time_percent float %
dma_transfer_average_bytes float B
dma_packet_time float s
dma_transfer_time float s
dma_transfer_count int64 -
dma_transfer_total_bytes int64 B
dma_queue_count int64 -
inputs_and_weights_size_bytes int64 B
inputs_outputs_weights_size_bytes int64 B
weight_size_bytes int64 B
static_dma_packet_count int64 -
static_dma_size int64 B
dynamic_dma_packet_percent float %
static_dma_packet_percent float %
dynamic_dma_size_percent float %
static_dma_size_percent float %
mbu_estimated_percent float %
mbu_min_read_util_percent float %
hbm_write_bytes int64 B
hbm_read_bytes int64 B
sbuf_write_bytes int64 B
sbuf_read_bytes int64 B
spill_save_bytes int64 B
spill_reload_bytes int64 B
psum_write_bytes int64 B
psum_read_bytes int64 B
psum_read_sbuf_write_count int64 -
psum_read_sbuf_write_bytes int64 B
input_queue_bytes int64 B
output_queue_bytes int64 B
weight_queue_bytes int64 B
software_dynamic_dma_active_time float s
software_dynamic_dma_active_time_percent float %
software_dynamic_dma_packet_count int64 -
software_dynamic_dma_size int64 B
software_dynamic_dma_packet_percent float %
software_dynamic_dma_size_percent float %
hardware_dynamic_dma_active_time float s
hardware_dynamic_dma_active_time_percent float %
hardware_dynamic_dma_packet_count int64 -
hardware_dynamic_dma_size int64 B
hardware_dynamic_dma_packet_percent float %
hardware_dynamic_dma_size_percent float %
tensor_engine_instruction_time float s
tensor_engine_active_time float s
tensor_engine_active_time_percent float %
tensor_engine_instruction_count int64 -
matmul_instruction_count int64 -
mfu_estimated_percent float %
mfu_max_achievable_estimated_percent float %
mfu_hlo_estimated_percent float %
mfu_hlo_max_achievable_estimated_percent float %
mfu_inst_estimated_percent float %
mfu_inst_max_achievable_estimated_percent float %
hfu_estimated_percent float %
vector_engine_instruction_time float s
vector_engine_active_time float s
vector_engine_active_time_percent float %
vector_engine_instruction_count int64 -
scalar_engine_instruction_time float s
scalar_engine_active_time float s
scalar_engine_active_time_percent float %
scalar_engine_instruction_count int64 -
activate_instruction_time float s
activate_instruction_count int64 -
sync_engine_instruction_time float s
sync_engine_active_time float s
sync_engine_active_time_percent float %
sync_engine_instruction_count int64 -
gpsimd_engine_instruction_time float s
gpsimd_engine_active_time float s
gpsimd_engine_active_time_percent float %
gpsimd_engine_instruction_count int64 -
cc_op_time float s
cc_op_active_time float s
cc_op_active_time_percent float %
cc_op_count int64 -
cc_cores_instruction_time float s
cc_cores_instruction_active_time float s
cc_cores_instruction_active_time_percent float %
cc_cores_instruction_count int64 -
total_exec_time float s
total_active_time float s
total_active_time_percent float %
"""

_WORDS = {
    "total_time": "From the first begin to the last end.",
    "total_exec_time": "Durations of all executions added.",
    "total_active_time": "Time in which an engine, a transfer or a collective runs.",
    "neuroncore_cycle_count": "Clock cycles of the core in that time.",
    "model_flops": "Floating-point operations of the model's matrix products.",
    "hardware_flops": "The same with transpositions on the matrix engine.",
    "transpose_flops": "Operations spent on transposing.",
    "adjusted_hardware_flops": "Hardware FLOPs, weighed by type to compare with the BF16 peak.",
    "adjusted_transpose_flops": "Transpose FLOPs, weighed by type.",
    "mm_arithmetic_intensity": "Model FLOPs over bytes to and from HBM.",
    "peak_flops_bandwidth_ratio": "Peak FLOPs over peak HBM bandwidth: the ridge of the roofline.",
    "mfu_estimated_percent": "Model FLOPs, weighed by type, over the BF16 peak.",
    "hfu_estimated_percent": "Hardware FLOPs, weighed by type, over the BF16 peak.",
    "mbu_estimated_percent": "Bytes to and from HBM over the peak HBM bandwidth.",
    "event_count": "Instructions and transfers in the profile.",
}
_ENDINGS = (
    ("_active_time_percent", "share of the executions' time in which it is active"),
    ("_active_time", "time in which it is active"),
    ("_instruction_time", "durations of its instructions added"),
    ("_instruction_count", "number of its instructions"),
    ("_percent", "share"),
    ("_time", "time"),
    ("_count", "number"),
    ("_cycles", "clock cycles"),
    ("_bytes", "bytes"),
    ("_size", "bytes"),
)


def _text(name: str) -> str:
    """What a figure is: in words of its own, else by the ending of its name."""
    if name in _WORDS:
        return _WORDS[name]
    for ending, words in _ENDINGS:
        if name.endswith(ending):
            return f"{name.removesuffix(ending).replace('_', ' ')}: {words}."
    raise KeyError(name)


def _described() -> str:
    lines = _COLUMNS.strip().splitlines()
    return "\n".join(f"{line} {_text(line.split(' ', 1)[0])}" for line in lines)


SUMMARY: Table = table("Summary", "Figures over the whole profile.", _described())
