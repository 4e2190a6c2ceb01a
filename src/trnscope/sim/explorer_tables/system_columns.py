"""Columns of the tables of a system profile and of every profile, after schema 7.4.0."""

from __future__ import annotations

from trnscope.sim.explorer_tables.columns import Table, table

SYSTEM_TABLES: tuple[Table, ...] = (
    table(
        "SystemProfileEvents",
        "What framework, runtime and cores did, over time.",
        """
id! int64 - Number of the row, unique in the table.
name! text - What happened.
start_ts! int64 ns Begin.
end_ts! int64 ns End.
duration_ns! int64 ns End minus begin.
trace_event_source! text - framework, neuron_rt or neuron_hw.
instance_id! text - Machine that it comes from.
process_id! int64 - Process on that machine.
thread_id! int64 - Thread of the process.
nc_idx int64 - Logical core, as the process counts.
pcore_idx int64 - Physical core within the logical one.
worker_gid int64 - Number of the core over all processes.
flow_id texts - Ids that join op, runtime and core.
framework_stream_id text - Stream of the framework.
extra_attributes_json text - What has no column.
""",
    ),
    table(
        "SystemProfileMetadata",
        "Range of the system profile.",
        """
first_ts! text - First time, as text.
last_ts! text - Last time, as text.
first_ts_ns! text - First time, ns.
last_ts_ns! text - Last time, ns.
ntff_version! int64 - Version of the raw capture; 0 where there was none.
hbm_capacity_bytes! int64 B HBM of a core.
""",
    ),
    table(
        "DeviceProfileList",
        "Device profiles that belong to this system profile.",
        """
device_profile_name! text - End of the name of its folder.
instance_id! text - Machine that it comes from.
process_id! int64 - Process on that machine.
nc_id! int64 - Logical core.
session_id int64 - Recording, where a core has several.
model_id int64 - Program, where the profile is of one.
""",
    ),
    table(
        "CpuUsage",
        "How busy the processors of the host are.",
        """
timestamp! int64 ns When the sample was taken.
util_percent! float % Busy share of the last period, 0 to 100.
cpu_id! text - Processor, or "average".
instance_id! text - Machine that it comes from.
ultraserver_id int64 - UltraServer, where the machine is part of one.
ultraserver_instance_index int64 - Place of the machine in its UltraServer.
""",
    ),
    table(
        "HostMemUsage",
        "Memory of the host in use.",
        """
timestamp! int64 ns When the sample was taken.
used_bytes! int64 B Bytes in use.
used_percent! float % Share of the memory, 0 to 100.
instance_id! text - Machine that it comes from.
ultraserver_id int64 - UltraServer, where the machine is part of one.
ultraserver_instance_index int64 - Place of the machine in its UltraServer.
""",
    ),
    table(
        "SchemaFields",
        "This description.",
        """
table_name! text - Table.
table_description! text - What a row of the table is.
field_name! text - Column.
field_description! text - What the column says.
field_example text - An example.
field_type! text - Type.
field_required! bool - Whether every row has it.
field_format text - Width of the type.
field_unit text - Unit.
field_minimum float - Least value.
field_maximum float - Largest value.
field_enum_values text - Values that may occur.
""",
    ),
    table(
        "Warning",
        "What a reader of the profile should know.",
        """
message! text - One sentence.
category! text - Kind.
""",
    ),
)
