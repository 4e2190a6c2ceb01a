// What each key does on the timeline.
import { camera, marks, range, selected } from "../state";
import { around, pan, whole, zoomAt } from "./camera";
import { laneRanges } from "./layout";
import { details, select } from "./selection";
import type { Stage } from "./stage";

const ZOOM = 0.7;
const PAN = 0.2;

export interface KeyHelp {
  keys: string;
  does: string;
}

export const KEY_HELP: KeyHelp[] = [
  { keys: "W S", does: "zoom in, zoom out" },
  { keys: "A D ← →", does: "move in time" },
  { keys: "↑ ↓", does: "scroll through the tracks" },
  { keys: "[ ]", does: "select the slice before, after" },
  { keys: "F", does: "show the selection; again: show everything" },
  { keys: "M", does: "mark this time, or remove the mark" },
  { keys: "R", does: "take what is on screen, or the selected slice, as the range" },
  { keys: "/", does: "search; Enter goes to the next match" },
  { keys: "Esc", does: "clear the selection and the range" },
  { keys: "Ctrl + wheel", does: "zoom where the mouse is" },
  { keys: "drag, Shift + drag", does: "select a range, move in time" },
];

/** Act on a key; returns whether it means something here. */
export function onKey(event: KeyboardEvent, stage: Stage, scrollBy: (px: number) => void): boolean {
  if (event.ctrlKey || event.metaKey || event.altKey) return false;
  const action = ACTIONS[event.key.length === 1 ? event.key.toLowerCase() : event.key];
  if (action === undefined) return false;
  action(stage, scrollBy);
  return true;
}

type Action = (stage: Stage, scrollBy: (px: number) => void) => void;

const ACTIONS: Record<string, Action | undefined> = {
  w: (stage) => stage.go(zoomAt(stage.destination, center(stage), ZOOM)),
  s: (stage) => stage.go(zoomAt(stage.destination, center(stage), 1 / ZOOM)),
  a: (stage) => stage.go(pan(stage.destination, -PAN)),
  d: (stage) => stage.go(pan(stage.destination, PAN)),
  ArrowLeft: (stage) => stage.go(pan(stage.destination, -PAN)),
  ArrowRight: (stage) => stage.go(pan(stage.destination, PAN)),
  ArrowUp: (_, scrollBy) => scrollBy(-60),
  ArrowDown: (_, scrollBy) => scrollBy(60),
  "[": (stage) => neighbour(stage, "previous"),
  "]": (stage) => neighbour(stage, "next"),
  f: fit,
  m: mark,
  r: takeRange,
  Escape: () => {
    selected.value = null;
    range.value = null;
  },
};

// The mouse's time if it is over the timeline, else the middle of the screen.
function center(stage: Stage): number {
  const { start, end } = stage.destination;
  const at = stage.pointer.value;
  return at !== null && at > start && at < end ? at : (start + end) / 2;
}

function neighbour(stage: Stage, side: "previous" | "next"): void {
  const found = details.value?.[side];
  if (found) select(found);
  else if (details.value === null) selectFirstInSight(stage);
}

function selectFirstInSight(stage: Stage): void {
  const rects = stage.loader.rects.value;
  const at = camera.value;
  if (rects === null || at === null) return;
  const lanes = laneRanges(stage.rowsInSight(stage.size.value.height)).split(",");
  for (const text of lanes) {
    const lane = Number.parseInt(text, 10);
    const span = rects.lanes.get(lane);
    if (span === undefined) continue;
    for (let row = span[0]; row < span[1]; row++) {
      if (rects.start[row] < at.start || rects.start[row] > at.end) continue;
      selected.value = { source: stage.tracks.at(lane)?.source ?? 0, slice: rects.slice[row] };
      return;
    }
  }
}

function fit(stage: Stage): void {
  const slice = details.value?.slice;
  const wanted = slice
    ? around(slice.at_ns, slice.duration_ns)
    : range.value
      ? around(range.value.start, range.value.end - range.value.start)
      : whole(stage.lengthNs);
  const now = stage.destination;
  const there = Math.abs(now.end - now.start - (wanted.end - wanted.start));
  const isThere = there < 0.02 * (wanted.end - wanted.start);
  stage.go(isThere ? whole(stage.lengthNs) : wanted);
}

function mark(stage: Stage): void {
  const time = Math.round(details.value?.slice.at_ns ?? center(stage));
  const near = (stage.destination.end - stage.destination.start) / 200;
  const rest = marks.value.filter((each) => Math.abs(each - time) > near);
  marks.value =
    rest.length < marks.value.length ? rest : [...marks.value, time].sort((a, b) => a - b);
}

function takeRange(stage: Stage): void {
  const slice = details.value?.slice;
  const now = stage.destination;
  range.value =
    slice && slice.duration_ns > 0
      ? { start: slice.at_ns, end: slice.at_ns + slice.duration_ns }
      : { start: Math.max(0, now.start), end: Math.min(stage.lengthNs, now.end) };
}
