// Which row of the timeline is where: groups, tracks and lanes on the y axis.
import type { Track } from "../data/documents";

export const LANE_HEIGHT = 18;
export const GROUP_HEIGHT = 24;
const TRACK_GAP = 5;
/** Lanes that are open at first; the rest can be opened by whoever wants to see it. */
const OPEN_LANES = 64;

export interface GroupRow {
  type: "group";
  key: string;
  name: string;
  y: number;
  height: number;
  open: boolean;
}

export interface TrackRow {
  type: "track";
  key: string;
  name: string;
  track: Track;
  y: number;
  height: number;
  open: boolean;
}

export type Row = GroupRow | TrackRow;

export interface Layout {
  rows: Row[];
  height: number;
  byKey: Map<string, Row>;
}

/** All tracks, and which of them a lane belongs to. */
export class TrackList {
  private readonly ofLane: Int32Array;

  constructor(readonly all: Track[]) {
    const ends = all.map((track) => track.first_lane + track.num_lanes);
    this.ofLane = new Int32Array(ends.reduce((a, b) => Math.max(a, b), 0)).fill(-1);
    all.forEach((track, at) => this.ofLane.fill(at, track.first_lane, ends[at]));
  }

  /** The track of a lane. */
  at(lane: number): Track | null {
    return this.all[this.ofLane[lane]] ?? null;
  }
}

/** The key of a track's group; ranks and files stand before devices and processes. */
export function groupKey(track: Track): string {
  return `${track.source}|${track.group}`;
}

/** The key of one track. */
export function trackKey(track: Track): string {
  return `lane ${track.first_lane}`;
}

/** What is closed at first: all that comes after the first screens, and idle single rows. */
export function closedAtFirst(tracks: Track[]): Set<string> {
  const closed = new Set<string>();
  let lanes = 0;
  for (const track of tracks) {
    if (lanes > OPEN_LANES) closed.add(trackKey(track));
    else lanes += track.num_lanes;
  }
  return closed;
}

/** Place the rows; a closed track shows its first lane, a closed group only its name. */
export function layOut(tracks: Track[], sources: string[], closed: ReadonlySet<string>): Layout {
  const rows: Row[] = [];
  let y = 0;
  let group: GroupRow | null = null;
  for (const track of tracks) {
    const key = groupKey(track);
    if (group === null || group.key !== key) {
      const prefix = sources.length > 1 ? `${sources[track.source]} › ` : "";
      const open: boolean = !closed.has(key);
      group = { type: "group", key, name: prefix + track.group, y, height: GROUP_HEIGHT, open };
      rows.push(group);
      y += GROUP_HEIGHT;
    }
    if (!group.open) continue;
    const open = !closed.has(trackKey(track));
    const height = (open ? track.num_lanes : 1) * LANE_HEIGHT + TRACK_GAP;
    rows.push({ type: "track", key: trackKey(track), name: track.name, track, y, height, open });
    y += height;
  }
  return { rows, height: y, byKey: new Map(rows.map((row) => [row.key, row])) };
}

/** The rows between two heights. */
export function visibleRows(layout: Layout, top: number, bottom: number): Row[] {
  const first = Math.max(0, firstBelow(layout.rows, top) - 1);
  const found: Row[] = [];
  for (let at = first; at < layout.rows.length && layout.rows[at].y < bottom; at++) {
    if (layout.rows[at].y + layout.rows[at].height > top) found.push(layout.rows[at]);
  }
  return found;
}

/** The row at a height. */
export function rowAt(layout: Layout, y: number): Row | null {
  const row = layout.rows[firstBelow(layout.rows, y) - 1];
  return row !== undefined && y < row.y + row.height ? row : null;
}

/** The lane at a height; null on a group's name, in a gap, or below all. */
export function laneAt(layout: Layout, y: number): number | null {
  const row = rowAt(layout, y);
  if (row === null || row.type === "group") return null;
  const depth = Math.floor((y - row.y) / LANE_HEIGHT);
  return depth < (row.open ? row.track.num_lanes : 1) ? row.track.first_lane + depth : null;
}

/** Where a lane is drawn; a lane of a closed track or group is where that one's row is. */
export function laneY(layout: Layout, tracks: TrackList, lane: number): number {
  const track = tracks.at(lane);
  if (track === null) return 0;
  const row = layout.byKey.get(trackKey(track));
  if (row === undefined) return layout.byKey.get(groupKey(track))?.y ?? 0;
  return row.y + (row.open ? (lane - track.first_lane) * LANE_HEIGHT : 0);
}

/** The lanes that these rows show, as ranges for the server: "0-5,9". */
export function laneRanges(rows: Row[]): string {
  const parts: string[] = [];
  for (const row of rows) {
    if (row.type === "group") continue;
    const first = row.track.first_lane;
    const last = first + (row.open ? row.track.num_lanes : 1) - 1;
    parts.push(first === last ? `${first}` : `${first}-${last}`);
  }
  return parts.join(",");
}

// Index of the first row that starts below a height.
function firstBelow(rows: Row[], y: number): number {
  let low = 0;
  let high = rows.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (rows[middle].y <= y) low = middle + 1;
    else high = middle;
  }
  return low;
}
