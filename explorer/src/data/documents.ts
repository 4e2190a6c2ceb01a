// The documents of the server: docs/reference/json.md for those that the command line prints too.
import type { Ns } from "./json";

export interface About {
  version: string;
  paths: string[];
  num_events: number;
  incomplete: string | null;
  simulated_by: string | null;
  /** In a report: rows that did not fit, by document. */
  left_out?: Record<string, number>;
  redacted?: boolean;
}

export interface Sentence {
  sentence: string;
}

export interface Finding {
  code: string;
  rule: string;
  title: string;
  /** Low, likely and high; null for a fault of the recording, which costs no step any time. */
  recoverable_ns_per_step: [number, number, number] | null;
  share_of_step: number | null;
  confidence: "high" | "medium" | "low";
  evidence: number[];
  source: { file: string; line: number }[] | null;
  try: string[];
}

export interface Explanation {
  verdict: string;
  abstained: boolean;
  reason: string | null;
  findings: Finding[];
  withheld: { code: string; rule: string; reason: string }[];
}

export interface Evidence {
  /** Of each finding, in their order. */
  findings: SliceRef[][];
}

export interface HealthWarning {
  source: number;
  code: string;
  message: string;
  count: number;
  consequence: string | null;
}

export interface HealthBody {
  complete: boolean;
  num_events_read: number;
  num_events_repaired: number;
  num_events_unreadable: number;
  warnings: HealthWarning[];
}

export interface DeviceSummary {
  source: number;
  rank: number | null;
  device: string;
  kind: string;
  simulated: boolean;
  num_kernels: number;
  sum_ns: number;
  busy_ns: number;
  idle_ns: number;
  compute_ns: number;
  communication_ns: number;
  exposed_communication_ns: number;
  memcpy_ns: number;
  exposed_memcpy_ns: number;
  unlinked_ns: number;
}

export interface Summary {
  sources: { path: string; format: string; rank: number | null; num_events: number }[];
  health: HealthBody;
  span_ns: number;
  devices: DeviceSummary[];
  steps: { source: number; name: string; start_ns: Ns; duration_ns: number }[];
}

export interface BreakdownRow {
  source: number;
  rank: number | null;
  name: string;
  device: string | null;
  start_ns: Ns;
  duration_ns: number;
  [part: `${string}_ns`]: Ns;
}

export interface Breakdown {
  basis: "device" | "host" | null;
  rows: BreakdownRow[];
}

export interface Op {
  name: string;
  calls: number;
  self_cpu_ns: number;
  cpu_total_ns: number;
  self_device_ns: number | null;
  device_total_ns: number | null;
  input_shapes?: unknown;
  stack?: string[];
  module?: string;
}

export interface Ops {
  ops: Op[];
  unattributed_device_ns: number | null;
}

export interface Kernel {
  name: string;
  kind: string;
  count: number;
  sum_ns: number;
  mean_ns: number;
  min_ns: number;
  p50_ns: number;
  p95_ns: number;
  max_ns: number;
  share_of_sum_ratio: number | null;
  devices: string[];
  streams: number[];
}

export interface Kernels {
  kernels: Kernel[];
  sum_ns: number;
  busy_ns: number;
}

export interface Track {
  source: number;
  group: string;
  name: string;
  is_device: boolean;
  first_lane: number;
  num_lanes: number;
  num_slices: number;
}

export interface Tracks {
  axis: { zeros_ns: Ns[]; length_ns: number; is_common: boolean };
  sources: string[];
  tracks: Track[];
}

export interface SliceRef {
  source: number;
  slice: number;
  name: string;
  kind: string;
  at_ns: number;
  duration_ns: number;
  lane: number;
}

export interface Link {
  relation: string;
  cause: SliceRef;
  effect: SliceRef;
}

export interface SliceDetails {
  slice: SliceRef;
  start_ns: Ns;
  self_ns: number;
  track: string;
  category: string;
  args: string | null;
  args_problem: string | null;
  parents: SliceRef[];
  previous: SliceRef | null;
  next: SliceRef | null;
  num_links: number;
  links: Link[];
}

export interface Found {
  query: string;
  num_slices: number;
  num_names: number;
  names: { name: string; count: number }[];
  slices: SliceRef[];
}

export interface RangeReport {
  start_ns: number;
  end_ns: number;
  duration_ns: number;
  num_slices: number;
  devices: {
    source: number;
    rank: number | null;
    device: string;
    busy_ns: number;
    idle_ns: number;
    compute_ns: number;
    communication_ns: number;
    memcpy_ns: number;
  }[];
  num_rows: number;
  rows: { name: string; kind: string; count: number; sum_ns: number }[];
}

export interface MemoryOp {
  name: string | null;
  num_allocations: number;
  num_frees: number;
  allocated_bytes: number;
  freed_bytes: number;
  net_bytes: number;
  held_at_peak_bytes: number;
}

export interface DeviceMemory {
  source: number;
  rank: number | null;
  device: string;
  is_start_exact: boolean;
  start_bytes: number;
  peak_bytes: number;
  peak_ts_ns: Ns;
  peak_op: string | null;
  end_bytes: number;
  never_freed: { count: number; size_bytes: number };
  ops: MemoryOp[];
  reserved: { peak_bytes: number; most_unused_bytes: number | null } | null;
  num_points: number;
  /** Time and level, thinned; times are rounded to what a number holds. */
  level: [number, number][];
}

export interface Memory {
  devices: DeviceMemory[];
}

export interface Peak {
  value: number;
  source: string;
}

export interface RooflineOp {
  name: string;
  input_shapes: unknown;
  dtype: string | null;
  family: string | null;
  calls: number;
  time_ns: number;
  flops: number | null;
  flops_per_s: number | null;
  bytes_per_s: number | null;
  arithmetic_intensity: number | null;
  attainable_ratio: number | null;
  bound: "compute" | "memory" | "neither" | "cache" | "inconsistent" | null;
  reason: string | null;
}

export interface Roofline {
  hardware: {
    title: string;
    peak_flops_per_s: Record<string, Peak>;
    peak_flops_per_s_of_any_type: Peak | null;
    peak_bytes_per_s: Peak | null;
  } | null;
  no_hardware: string | null;
  abstained: boolean;
  reason: string | null;
  /** Compute time with unknown FLOPs. */
  uncounted_ns: number;
  mfu_step: number | null;
  mfu_device: number | null;
  mbu_device: number | null;
  ops: RooflineOp[];
}

export type SqlCell = number | string | boolean | null;

export interface QueryAnswer {
  columns: string[];
  rows: SqlCell[][];
  has_more: boolean;
}
