// The parts of a step in words and colours; which parts there are, the document says.
import type { BreakdownRow } from "../data/documents";

const NOT_PARTS = new Set(["start_ns", "duration_ns"]);

const WORDS: Record<string, string> = {
  compute_ns: "compute",
  exposed_communication_ns: "exposed communication",
  exposed_memcpy_ns: "exposed copies",
  host_wait_ns: "waiting for the host",
  launch_wait_ns: "waiting for launched work to start",
  other_ns: "other",
  data_loading_ns: "data loading",
  communication_ns: "communication",
  optimizer_ns: "optimizer",
  backward_ns: "backward",
  operators_ns: "operators",
  runtime_ns: "device runtime calls",
  other_threads_ns: "operators on other threads",
};

const COLORS: Record<string, string> = {
  compute_ns: "hsl(164 68% 38%)",
  exposed_communication_ns: "hsl(18 82% 52%)",
  exposed_memcpy_ns: "hsl(200 75% 62%)",
  host_wait_ns: "hsl(45 90% 58%)",
  launch_wait_ns: "hsl(265 30% 66%)",
  other_ns: "hsl(220 8% 68%)",
  data_loading_ns: "hsl(345 60% 56%)",
  communication_ns: "hsl(18 82% 52%)",
  optimizer_ns: "hsl(265 34% 60%)",
  backward_ns: "hsl(222 58% 42%)",
  operators_ns: "hsl(205 70% 56%)",
  runtime_ns: "hsl(40 88% 50%)",
  other_threads_ns: "hsl(190 30% 50%)",
};

/** The members of a row that add up to its duration, in the document's order. */
export function partKeys(row: BreakdownRow): `${string}_ns`[] {
  return Object.keys(row).filter(
    (key): key is `${string}_ns` => key.endsWith("_ns") && !NOT_PARTS.has(key),
  );
}

export function partWord(key: string): string {
  return WORDS[key] ?? key.replace(/_ns$/, "").replaceAll("_", " ");
}

export function partColor(key: string): string {
  return COLORS[key] ?? COLORS.other_ns;
}

/** One part of a row, ns. */
export function partOf(row: BreakdownRow, key: `${string}_ns`): number {
  return Number(row[key]);
}

export interface Group {
  key: string;
  title: string;
  rows: BreakdownRow[];
}

/** The rows of each device of each rank, or of each process, in the document's order. */
export function groupsOf(rows: BreakdownRow[]): Group[] {
  const groups = new Map<string, Group>();
  for (const row of rows) {
    const key = `${row.source}|${row.device}`;
    let group = groups.get(key);
    if (group === undefined) {
      const rank = row.rank === null ? "" : `rank ${row.rank} `;
      group = { key, title: `${rank}${row.device ?? "host"}`, rows: [] };
      groups.set(key, group);
    }
    group.rows.push(row);
  }
  return [...groups.values()];
}
