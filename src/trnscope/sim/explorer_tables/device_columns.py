"""Columns of the tables of a device profile, as Neuron Explorer's schema 7.4.0 names them."""

from __future__ import annotations

from trnscope.sim.explorer_tables.columns import Table, table

DEVICE_TABLES: tuple[Table, ...] = (
    table(
        "Metadata",
        "The machine and the tools behind the profile.",
        """
profile_schema_version! text - Version of these tables.
ntff_version! int32 - Version of the raw capture; 0 where there was none.
num_physical_cores! int32 - Physical cores in a logical one.
vnc_enabled! bool - Whether a logical core has several.
first_hw_timestamp! int64 ns First time.
last_hw_timestamp! int64 ns Last time.
first_ts! text - First time, as text.
last_ts! text - Last time, as text.
dma_ddr_bandwidth! float B/s Most that the DMA engines of a core move.
num_dma_engines_per_neuroncore! int32 - DMA engines of a physical core.
hbm_ddr_bandwidth! float B/s Most that HBM gives.
tensor_engine_num_rows! int64 - Rows of the matrix engine.
tensor_engine_num_cols! int64 - Columns of the matrix engine.
tensor_engine_clock_freq! float GHz Clock of the Tensor engine.
vector_engine_clock_freq! float GHz Clock of the Vector engine.
vector_engine_num_channels! int64 - Lanes of the Vector engine.
scalar_engine_clock_freq! float GHz Clock of the Scalar engine.
scalar_engine_num_channels! int64 - Lanes of the Scalar engine.
gpsimd_engine_clock_freq! float GHz Clock of the GpSimd engine.
gpsimd_engine_num_channels! int64 - Lanes of the GpSimd engine.
neuroncore_clock_freq! float GHz Clock that cycles are counted in.
ticks_per_nanosec! int64 - Resolution of the times.
instance_type text - Instance type.
runtime_version text - Version of the runtime.
collectives_version text - Version of the collectives.
driver_version text - Version of the driver.
explorer_version text - Tool that wrote the tables; for simulated times the cost model.
compiler_version text - Version of the compiler.
neuroncore_idx int64 - Logical core of the profile.
neuron_device_idx int64 - Chip of that core.
ultraserver_id int64 - UltraServer, where the machine is part of one.
ultraserver_type text - Kind of UltraServer.
ultraserver_size int32 - Machines in it.
ultraserver_instance_index int32 - Place of the machine in its UltraServer.
s3_bucket_path text - Where captures were stored.
profile_name text - Name of the profile.
explorer_build_time text - When the tool was built.
is_simulation bool - Whether times are simulated.
""",
    ),
    table(
        "ExecutionInfo",
        "Executions of programs on this core.",
        """
execution_index! int32 - Place in the profile, from 0.
neff_name text - Program.
execution_start_ts int64 ns Begin.
execution_end_ts int64 ns End.
num_subgraphs int32 - Physical cores that it runs on.
row_count int64 - Instructions and transfers of it in the profile.
""",
    ),
    table(
        "Instruction",
        "Instructions of the engines.",
        """
start_ts! int64 ns Begin.
end_ts! int64 ns End.
duration_ns! int64 ns End minus begin.
engine! text - Engine: tensor, vector, scalar, gpsimd or sync.
timeline_track text - Track that shows it.
pcore_idx int64 - Physical core within the logical one.
opcode! text - Operation of the instruction.
operands! text - What it works on.
compiler_opcode text - Operation as compiled.
compiler_operands text - Operands as compiled.
id! int64 - Number of the row, unique in the table.
pc! int64 - Place in the engine's program.
compiler_pc int64 - Place as compiled.
penguin_id text - Id in a compiler level.
raw_penguin_id int64 - The same as a number.
bir_id! text - Id in the last compiler level.
raw_bir_id int64 - The same as a number.
bir_instruction_name text - Name in the last compiler level.
kernel_instruction_name text - Instruction of a hand-written kernel.
crc_in int64 - Checksum of the input.
crc_out int64 - Checksum of the output.
evt_wait_time_ns int64 ns Wait for what it depends on.
hlo_attrs text - Attributes of its HLO instruction.
hlo_name text - HLO instruction that it comes from.
raw_hlo_id int64 - Number of that instruction.
raw_framework_id int64 - Number of the framework's op.
layer text - Op or module of the framework.
stack_frame_ids text - Source frames.
nki_source_location text - Line of a hand-written kernel.
bir_debug_info_source_location text - Line of the source.
dma_trigger_start_ts int64 - Begin of the transfer that it triggers.
dma_trigger_end_ts int64 - End of that transfer.
dma_wait_time_ns int64 ns From its end to the begin of that transfer.
instruction_chain text - Instructions that run as one.
hbm_read_bytes int64 - Bytes read from HBM.
hbm_write_bytes int64 - Bytes written to HBM.
sbuf_read_bytes int64 - Bytes read from SBUF.
sbuf_write_bytes int64 - Bytes written to SBUF.
spill_save_bytes int64 - Bytes spilled to HBM.
spill_reload_bytes int64 - Bytes loaded back after a spill.
psum_read_bytes int64 - Bytes read from PSUM.
psum_write_bytes int64 - Bytes written to PSUM.
psum_read_sbuf_write_bytes int64 - Bytes moved from PSUM to SBUF.
input_queue_bytes int64 - Bytes from input queues.
output_queue_bytes int64 - Bytes to output queues.
weight_queue_bytes int64 - Bytes from weight queues.
performance_mode text - Faster mode of the engine.
tensor_instruction_type text - Whether a matrix instruction transposes.
tensor_elements int64 - Elements of a matrix instruction.
raw_flops int64 - Floating-point operations.
adjusted_flops int64 - The same, weighed by type to compare with the BF16 peak.
tensor_elements_transpose int64 - Elements that are transposed.
flops_transpose int64 - Operations spent on transposing.
adjusted_flops_transpose int64 - The same, weighed by type.
scalar_activation_fn text - Function of the Scalar engine.
""",
    ),
    table(
        "DmaPacketAggregated",
        "DMA transfers, a row for all packets of one.",
        """
start_ts! int64 ns Begin.
end_ts! int64 ns End.
duration_ns! int64 ns End minus begin.
id! int64 - Number of the row, unique in the table.
pcore_idx int64 - Physical core within the logical one.
block_id! int32 - Number of the transfer in its program.
queue_idx! int64 - Number of the queue.
queue_name! text - DMA queue.
queue_type text - Who fills the queue.
op! text - read, write or move, as seen from HBM.
variable! text - What is moved.
read_bytes! int64 B Bytes read.
write_bytes! int64 B Bytes written.
transfer_bytes! int64 B Bytes moved.
throughput! float B/s Bytes moved over the time it took.
source! text - Memory that it reads.
dest! text - Memory that it writes.
semaphore_id! text - Semaphore that it signals.
modular_flow_function text - Part of the program.
read_sbuf_partitions! text - SBUF partitions that it reads.
read_num_sbuf_partitions! int32 - How many of them.
read_shape! text - Shape of what is read.
read_offset! text - Where reading begins.
read_steps! text - Strides of reading.
write_sbuf_partitions! text - SBUF partitions that it writes.
write_num_sbuf_partitions! int32 - How many of them.
write_shape! text - Shape of what is written.
write_offset! text - Where writing begins.
write_steps! text - Strides of writing.
is_transpose_mode bool - Whether it transposes.
transpose_element_size text - Element size of the transposition.
transpose_shape text - Shape of the transposition.
transpose_from_shape text - Shape before it.
transpose_to_shape text - Shape after it.
transpose_unroll_factor text - How often it is unrolled.
trigger int64 - Begin of the instruction that it waited for.
completion int64 - End of the instruction that it waited for.
""",
    ),
    table(
        "CcOp",
        "Collective operations of a core.",
        """
start_ts! int64 ns Begin.
end_ts! int64 ns End.
duration_ns! int64 ns End minus begin.
operation! text - Kind of collective.
algorithm! text - How it is carried out.
num_elements! int64 - Elements on one rank.
dtype! text - Type of the elements.
op_id! int64 - Number of the operation.
stream_id! int64 - Stream that it runs on.
stream_index! int64 - Stream, counted within the execution.
trigger_engine! text - Engine that starts it; empty where the host does.
input_size int64 B Bytes in.
output_size int64 B Bytes out.
algorithm_bandwidth float B/s Larger of both sizes over the duration.
bus_bandwidth float B/s The same, scaled to what the links carry.
trigger_start_ts int64 ns When it was triggered.
cc_trigger_start_delay int64 ns From the trigger to the begin.
replica_group_id int64 - Number of the group.
replica_group text - Ranks that take part.
""",
    ),
    table(
        "ActiveTime",
        "Stretches in which an engine works on at least one instruction.",
        """
start_ts! int64 ns Begin.
end_ts! int64 ns End.
engine! text - Engine: tensor, vector, scalar, gpsimd or sync.
pcore_idx! int64 - Physical core within the logical one.
duration_ns! int64 ns End minus begin.
""",
    ),
    table(
        "Flow",
        "What waits for what.",
        """
in_id! int64 - Row that is waited for.
out_id! int64 - Row that waits.
in_table! text - Table of the first.
out_table! text - Table of the second.
dependency_type text - Why it waits.
gap_time int64 ns From the end of the first to the begin of the second.
""",
    ),
    table(
        "FrameworkNode",
        "The framework's ops with all their executions.",
        """
node_name! text - Op or module.
children_names! text - Nodes below.
parent_name! text - Node above; empty at the top.
children_ids! text - Numbers of the executions.
start_ts! int64 ns Begin.
end_ts! int64 ns End.
time_intervals! text - Begin and end of each stretch.
element_count_per_interval text - Elements by stretch.
transpose_element_count_per_interval text - Transposed elements by stretch.
hbm_transfer_size_per_interval text B Bytes to and from HBM by stretch.
hfu float % Hardware FLOPs over the peak, 0 to 100.
mfu float % Model FLOPs over the peak, 0 to 100.
hfu_per_interval text - HFU by stretch.
mfu_per_interval text - MFU by stretch.
mbu_per_interval text - HBM bandwidth over the peak by stretch.
hbm_read_bytes int64 B Bytes read from HBM.
hbm_write_bytes int64 B Bytes written to HBM.
sbuf_read_bytes int64 B Bytes read from SBUF.
sbuf_write_bytes int64 B Bytes written to SBUF.
tensor_engine_instruction_count int64 - Instructions of the Tensor engine.
scalar_engine_instruction_count int64 - Instructions of the Scalar engine.
sync_engine_instruction_count int64 - Instructions of the Sync engine.
gpsimd_engine_instruction_count int64 - Instructions of the GpSimd engine.
vector_engine_instruction_count int64 - Instructions of the Vector engine.
total_time_tensor text ns First and last time of the Tensor engine.
total_time_scalar text ns First and last time of the Scalar engine.
total_time_sync text ns First and last time of the Sync engine.
total_time_gpsimd text ns First and last time of the GpSimd engine.
total_time_vector text ns First and last time of the Vector engine.
load_weight_bytes int64 B Bytes loaded as stationary matrices.
total_channels_scalar int64 - Lanes that the Scalar engine used.
total_channels_vector int64 - Lanes that the Vector engine used.
""",
    ),
    table(
        "TensorInfo",
        "Values that programs read and write.",
        """
variable_name text - Name in the program.
type text - IN, OUT or WEIGHT.
format text - Order of the dimensions.
shape text - Shape.
size int64 B Bytes.
node int64 - Number of its program.
pcore_idx int64 - Physical core within the logical one.
load_to_sbuf_avg_size_bytes int64 - Mean size of its loads.
load_to_sbuf_total_size_bytes int64 - Bytes of its loads.
load_to_sbuf_dma_count int64 - How many loads.
load_to_sbuf_repeat_factor float - How often all of it is loaded.
""",
    ),
)
