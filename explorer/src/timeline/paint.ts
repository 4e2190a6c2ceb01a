// Draws rectangles on a canvas: by colour, at least a pixel wide, with names where they fit.
import { shortNs } from "../data/format";
import type { Camera } from "./camera";
import { hasDarkText, shadeOf, sliceColor } from "./colors";
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
  dark: boolean;
}

/** Draw everything that is in sight. The context is scaled to CSS pixels. */
export function paintSlices(context: CanvasRenderingContext2D, scene: Scene): void {
  const boxes = new Map<string, number[]>();
  const labels: Label[] = [];
  const styles = stylesOf(scene.rects.names, scene.query);
  for (const row of scene.rows) {
    if (row.type === "group") continue;
    const lanes = row.open ? row.track.num_lanes : 1;
    for (let depth = 0; depth < lanes; depth++) {
      const y = row.y + depth * LANE_HEIGHT - scene.scroll;
      if (y > scene.height || y + LANE_HEIGHT < 0) continue;
      collectLane(scene, row.track.first_lane + depth, y, styles, boxes, labels);
    }
  }
  for (const [color, box] of boxes) {
    context.fillStyle = color;
    for (let at = 0; at < box.length; at += 4) {
      context.fillRect(box[at], box[at + 1], box[at + 2], box[at + 3]);
    }
  }
  paintLabels(context, labels);
}

interface NameStyle {
  shade: number;
  faint: boolean;
}

function stylesOf(names: string[], query: string): NameStyle[] {
  return names.map((name) => ({
    shade: shadeOf(name),
    faint: query !== "" && !name.toLowerCase().includes(query),
  }));
}

function collectLane(
  scene: Scene,
  lane: number,
  y: number,
  styles: NameStyle[],
  boxes: Map<string, number[]>,
  labels: Label[],
): void {
  const { camera, rects, width } = scene;
  const span = rects.lanes.get(lane);
  if (span === undefined) return;
  const perNs = width / (camera.end - camera.start);
  const from = firstAfter(rects, span[0], span[1], camera.start);
  for (let at = from; at < span[1] && rects.start[at] < camera.end; at++) {
    const left = Math.max((rects.start[at] - camera.start) * perNs, -1);
    const right = Math.min((rects.start[at] + rects.length[at] - camera.start) * perNs, width + 1);
    const style = styles[rects.name[at]];
    const kind = rects.kind[at];
    // Many slices in one rectangle are drawn as high as they fill it: gaps stay visible.
    const filled = rects.count[at] === 1 ? 1 : rects.busy[at] / Math.max(rects.length[at], 1);
    const height = Math.max(3, (LANE_HEIGHT - GAP_PX) * Math.min(1, filled));
    const color = sliceColor(kind, style.shade, style.faint);
    let box = boxes.get(color);
    if (box === undefined) boxes.set(color, (box = []));
    const shown = Math.max(right - left - (right - left > 3 ? 0.6 : 0), 1);
    box.push(left, y + LANE_HEIGHT - GAP_PX - height, shown, height);
    // Slices are joined when they start within a pixel: a wide one is nearly all its longest.
    if (right - left > LABEL_FROM_PX && !style.faint) {
      labels.push({
        text: labelOf(rects.names[rects.name[at]], rects.length[at], right - left),
        x: Math.max(left, 0) + 4,
        y: y + LANE_HEIGHT / 2 - 0.5,
        width: right - left,
        dark: hasDarkText(kind),
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
  for (const dark of [true, false]) {
    context.fillStyle = dark ? "rgb(0 0 0 / 0.85)" : "rgb(255 255 255 / 0.95)";
    for (const label of labels) {
      if (label.dark === dark) context.fillText(label.text, label.x, label.y, label.width - 6);
    }
  }
}
