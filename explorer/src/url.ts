// The page's state as the part of its address after "#", and back.
import type { Camera } from "./timeline/camera";

export const VIEWS = [
  "overview",
  "timeline",
  "ops",
  "kernels",
  "memory",
  "roofline",
  "sql",
] as const;
export type View = (typeof VIEWS)[number];

export interface PageState {
  view: View;
  camera: Camera | null;
  selected: { source: number; slice: number } | null;
  range: { start: number; end: number } | null;
  marks: number[];
  query: string;
  /** Which finding is marked, from 0. */
  finding: number | null;
}

/** "#timeline?at=0-1000&slice=0.17": short, readable, and only what is set. */
export function encodeState(state: PageState): string {
  const parts = new URLSearchParams();
  const { camera, selected, range, marks, query, finding } = state;
  if (camera) parts.set("at", `${Math.round(camera.start)}_${Math.round(camera.end)}`);
  if (selected) parts.set("slice", `${selected.source}.${selected.slice}`);
  if (range) parts.set("range", `${Math.round(range.start)}_${Math.round(range.end)}`);
  if (marks.length) parts.set("marks", marks.map(Math.round).join("_"));
  if (query) parts.set("q", query);
  if (finding !== null) parts.set("finding", `${finding + 1}`);
  const text = parts.toString();
  return `#${state.view}${text ? `?${text}` : ""}`;
}

/** The state of an address; what is missing or malformed is left out. */
export function decodeState(hash: string): PageState {
  const [name = "", text = ""] = hash.replace(/^#/, "").split("?");
  const parts = new URLSearchParams(text);
  const slice = numbers(parts.get("slice"), ".");
  return {
    view: VIEWS.find((view) => view === name) ?? "overview",
    camera: interval(parts.get("at")),
    selected: slice.length === 2 ? { source: slice[0], slice: slice[1] } : null,
    range: interval(parts.get("range")),
    marks: numbers(parts.get("marks"), "_"),
    query: parts.get("q") ?? "",
    finding: numbers(parts.get("finding"), "_").map((at) => at - 1)[0] ?? null,
  };
}

function interval(text: string | null): { start: number; end: number } | null {
  const [start, end] = numbers(text, "_");
  return end > start ? { start, end } : null;
}

function numbers(text: string | null, separator: string): number[] {
  if (!text) return [];
  const found = text.split(separator).map(Number);
  return found.every(Number.isFinite) ? found : [];
}
