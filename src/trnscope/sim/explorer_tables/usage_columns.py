"""Columns of the tables of usage over time and of opcodes, after schema 7.4.0."""

from __future__ import annotations

from trnscope.sim.explorer_tables.columns import Table, table

USAGE_TABLES: tuple[Table, ...] = (
    table(
        "HbmUsage",
        "Bytes to and from HBM, over time.",
        """
timestamp! int64 ns When the sample was taken.
current_throughput! float B/s Bytes per second at this time.
total_transfer_bytes! int64 B Bytes moved since the profile began.
pcore_idx int64 - Physical core within the logical one.
""",
    ),
    table(
        "DmaUsage",
        "Bytes that the DMA engines move, over time.",
        """
timestamp! int64 ns When the sample was taken.
current_throughput! float B/s Bytes per second at this time.
total_transfer_bytes! int64 B Bytes moved since the profile began.
pcore_idx int64 - Physical core within the logical one.
""",
    ),
    table(
        "SbufUsage",
        "SBUF in use, over time.",
        """
timestamp! int64 ns When the sample was taken.
avg_util_percent float % Share in use, 0 to 100.
partition_0_util_percent float % Share of partition 0 in use, 0 to 100.
partition_32_util_percent float % Share of partition 32 in use, 0 to 100.
partition_64_util_percent float % Share of partition 64 in use, 0 to 100.
partition_96_util_percent float % Share of partition 96 in use, 0 to 100.
pcore_idx int64 - Physical core within the logical one.
""",
    ),
    table(
        "PsumUsage",
        "PSUM in use, over time.",
        """
timestamp! int64 ns When the sample was taken.
avg_util_percent float % Share in use, 0 to 100.
bank_0_util_percent float % Share of bank 0 in use, 0 to 100.
bank_1_util_percent float % Share of bank 1 in use, 0 to 100.
bank_2_util_percent float % Share of bank 2 in use, 0 to 100.
bank_3_util_percent float % Share of bank 3 in use, 0 to 100.
bank_4_util_percent float % Share of bank 4 in use, 0 to 100.
bank_5_util_percent float % Share of bank 5 in use, 0 to 100.
bank_6_util_percent float % Share of bank 6 in use, 0 to 100.
bank_7_util_percent float % Share of bank 7 in use, 0 to 100.
pcore_idx int64 - Physical core within the logical one.
""",
    ),
    table(
        "OpcodeSummary",
        "Instructions by engine and opcode.",
        """
engine! text - Engine: tensor, vector, scalar, gpsimd or sync.
opcode! text - Operation of the instruction.
instruction_count! int64 - How many.
instruction_time_ns! int64 ns Durations added.
active_time_ns! int64 ns Their union.
active_time_percent! float - Share of the time of all executions, 0 to 1.
""",
    ),
)
