// What the server sends of a window: one rectangle for each slice, or for several that are
// narrower than a pixel.
import { tableFromIPC } from "@uwdata/flechette";
import { printable } from "../data/format";
import { shadeOf } from "./colors";

export interface Rects {
  lane: Uint32Array;
  start: Float64Array;
  length: Float64Array;
  /** Sum of the durations of the slices that it stands for. */
  busy: Float64Array;
  count: Uint32Array;
  slice: Uint32Array;
  kind: Uint8Array;
  /** Index into `names`. */
  name: Uint32Array;
  names: string[];
  /** Shade of each name. */
  shades: Uint8Array;
  /** Of each lane the first rectangle and the one after the last; within, starts rise. */
  lanes: Map<number, [number, number]>;
}

/** Read the server's Arrow stream. */
export function decodeRects(bytes: Uint8Array): Rects {
  const table = tableFromIPC(bytes);
  const column = (name: string): unknown => table.getChild(name).toArray();
  const lane = column("lane") as Uint32Array;
  const names = namesOf(table.schema.metadata?.get("names"));
  return {
    lane,
    start: column("start") as Float64Array,
    length: column("length") as Float64Array,
    busy: column("busy") as Float64Array,
    count: column("count") as Uint32Array,
    slice: column("slice") as Uint32Array,
    kind: column("kind") as Uint8Array,
    name: column("name") as Uint32Array,
    names,
    shades: Uint8Array.from(names, shadeOf),
    lanes: lanesOf(lane),
  };
}

function namesOf(text: string | undefined): string[] {
  return (JSON.parse(text ?? "[]") as string[]).map(printable);
}

/** From the first rectangle of each lane to the one after its last. */
export function lanesOf(lane: ArrayLike<number>): Map<number, [number, number]> {
  const found = new Map<number, [number, number]>();
  let first = 0;
  for (let at = 1; at <= lane.length; at++) {
    if (at === lane.length || lane[at] !== lane[first]) {
      found.set(lane[first], [first, at]);
      first = at;
    }
  }
  return found;
}

/** The first rectangle of a stretch of one lane that ends after a time. */
export function firstAfter(rects: Rects, from: number, to: number, time: number): number {
  let low = from;
  let high = to;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (rects.start[middle] + rects.length[middle] <= time) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The rectangle of a lane at a time, or the next within `slack` ns; -1 where there is none. */
export function rectAt(rects: Rects, lane: number, time: number, slack: number): number {
  const span = rects.lanes.get(lane);
  if (span === undefined) return -1;
  const at = firstAfter(rects, span[0], span[1], time - slack);
  return at < span[1] && rects.start[at] <= time + slack ? at : -1;
}
