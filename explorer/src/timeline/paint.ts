// Draws rectangles on a canvas: by colour, at least a pixel wide, with names where they fit.
import { shortNs } from "../data/format";
import type { Camera } from "./camera";
import { sliceColor } from "./colors";
import { LANE_HEIGHT, type Row } from "./layout";
import { firstAfter, type Rects } from "./rows";

const LABEL_FROM_PX = 34;
const CHAR_PX = 6.1;
const GAP_PX = 2;

export interface Scene {
  camera: Camera;
  rows: Row[];
  rects: Rects;
  /** Pixels that are scrolled off at the top. */
  scroll: number;
  width: number;
  height: number;
  /** Lower-case text; what does not contain it is drawn faintly. */
  query: string;
}

interface Label {
  text: string;
  x: number;
  y: number;
  width: number;
}

/** Draw everything that is in sight. The context is scaled to CSS pixels. */
export function paintSlices(context: CanvasRenderingContext2D, scene: Scene): void {
  const picture: Picture = {
    boxes: [],
    labels: [],
    faint: faintNames(scene.rects, scene.query),
  };
  for (const row of scene.rows) {
    if (row.type === "group") continue;
    const lanes = row.open ? row.track.num_lanes : 1;
    for (let depth = 0; depth < lanes; depth++) {
      const y = row.y + depth * LANE_HEIGHT - scene.scroll;
      if (y > scene.height || y + LANE_HEIGHT < 0) continue;
      collectLane(scene, row.track.first_lane + depth, y, picture);
    }
  }
  // One colour after the other: changing it costs more than a rectangle.
  picture.boxes.forEach((box, key) => {
    context.fillStyle = sliceColor(key >> 3, (key >> 1) & 3, (key & 1) === 1);
    for (let at = 0; at < box.length; at += 4) {
      context.fillRect(box[at], box[at + 1], box[at + 2], box[at + 3]);
    }
  });
  paintLabels(context, picture.labels);
}

interface Picture {
  /** x, y, width and height of rectangles by kind * 8 + shade * 2 + faint. */
  boxes: number[][];
  labels: Label[];
  /** For each name 1 where the search does not want it. */
  faint: Uint8Array;
}

let lastFaint: { rects: Rects; query: string; faint: Uint8Array } | null = null;

function faintNames(rects: Rects, query: string): Uint8Array {
  if (lastFaint?.rects !== rects || lastFaint.query !== query) {
    const isFaint = (name: string): number =>
      query !== "" && !name.toLowerCase().includes(query) ? 1 : 0;
    lastFaint = { rects, query, faint: Uint8Array.from(rects.names, isFaint) };
  }
  return lastFaint.faint;
}

function collectLane(scene: Scene, lane: number, y: number, picture: Picture): void {
  const { camera, rects, width } = scene;
  const span = rects.lanes.get(lane);
  if (span === undefined) return;
  const perNs = width / (camera.end - camera.start);
  const from = firstAfter(rects, span[0], span[1], camera.start);
  for (let at = from; at < span[1] && rects.start[at] < camera.end; at++) {
    const left = Math.max((rects.start[at] - camera.start) * perNs, -1);
    const right = Math.min((rects.start[at] + rects.length[at] - camera.start) * perNs, width + 1);
    const name = rects.name[at];
    // Many slices in one rectangle are drawn as high as they fill it: gaps stay visible.
    const filled = rects.count[at] === 1 ? 1 : rects.busy[at] / Math.max(rects.length[at], 1);
    const height = Math.max(3, (LANE_HEIGHT - GAP_PX) * Math.min(1, filled));
    const faint = picture.faint[name];
    const box = (picture.boxes[rects.kind[at] * 8 + rects.shades[name] * 2 + faint] ??= []);
    const shown = Math.max(right - left - (right - left > 3 ? 0.6 : 0), 1);
    box.push(left, y + LANE_HEIGHT - GAP_PX - height, shown, height);
    // Slices are joined when they start within a pixel: a wide one is nearly all its longest.
    if (right - left > LABEL_FROM_PX && faint === 0) {
      picture.labels.push({
        text: labelOf(rects.names[name], rects.length[at], right - left),
        x: Math.max(left, 0) + 4,
        y: y + LANE_HEIGHT / 2 - 0.5,
        width: right - left,
      });
    }
  }
}

/** The name, cut to the room there is; with the duration where that fits too. */
export function labelOf(name: string, duration: number, room: number): string {
  const chars = Math.floor((room - 8) / CHAR_PX);
  const withTime = `${name}  ${shortNs(duration)}`;
  if (withTime.length <= chars) return withTime;
  return name.length <= chars ? name : `${name.slice(0, Math.max(chars - 1, 1))}…`;
}

function paintLabels(context: CanvasRenderingContext2D, labels: Label[]): void {
  context.font = "11px system-ui, sans-serif";
  context.textBaseline = "middle";
  context.fillStyle = "rgb(0 0 0 / 0.88)";
  for (const label of labels) {
    context.fillText(label.text, label.x, label.y, label.width - 6);
  }
}
