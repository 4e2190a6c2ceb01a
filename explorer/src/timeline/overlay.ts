// Draws what lies above the slices: hover, selection, arrows, the range and the marks.
import { shortNs } from "../data/format";
import type { SliceDetails, SliceRef } from "../data/documents";
import type { Camera } from "./camera";
import { ticks } from "./axis";
import { LANE_HEIGHT, laneY, type Layout, type TrackList } from "./layout";

export interface OverlayScene {
  camera: Camera;
  layout: Layout;
  tracks: TrackList;
  scroll: number;
  width: number;
  height: number;
  details: SliceDetails | null;
  /** What the search found; drawn even where it is too short to be seen. */
  matches: SliceRef[];
  range: { start: number; end: number } | null;
  marks: number[];
  /** What the marked finding is about. */
  evidence: SliceRef[];
  /** Time under the mouse. */
  pointer: number | null;
  colors: OverlayColors;
}

export interface OverlayColors {
  accent: string;
  text: string;
  muted: string;
  line: string;
  panel: string;
  raised: string;
  rangeFill: string;
  finding: string;
}

const MAX_ARROWS = 60;

export function paintOverlay(context: CanvasRenderingContext2D, scene: OverlayScene): void {
  paintRange(context, scene);
  paintMatches(context, scene);
  paintEvidence(context, scene);
  paintMarks(context, scene);
  if (scene.details !== null) {
    for (const { cause, effect } of scene.details.links.slice(0, MAX_ARROWS)) {
      // Within a track the nesting shows it already.
      if (scene.tracks.at(cause.lane) === scene.tracks.at(effect.lane)) continue;
      paintArrow(context, scene, cause, effect);
      paintFrame(context, scene, effect, scene.colors.accent, 1);
    }
    paintFrame(context, scene, scene.details.slice, scene.colors.text, 2);
  }
  if (scene.pointer !== null) {
    context.fillStyle = scene.colors.muted;
    context.fillRect(Math.round(xOf(scene, scene.pointer)), 0, 0.5, scene.height);
  }
}

/** The time axis above the tracks, and the lines that it throws on them. */
export function paintRuler(
  context: CanvasRenderingContext2D,
  scene: Pick<OverlayScene, "camera" | "width" | "colors" | "range" | "marks">,
  height: number,
): void {
  context.font = "11px system-ui, sans-serif";
  context.textBaseline = "middle";
  for (const { time, label } of ticks(scene.camera, scene.width)) {
    const x = Math.round(xOf(scene, time));
    context.fillStyle = scene.colors.line;
    context.fillRect(x, height - 7, 1, 7);
    context.fillStyle = scene.colors.muted;
    context.fillText(label, x + 5, height / 2 + 1);
  }
  if (scene.range === null) return;
  const left = Math.max(xOf(scene, scene.range.start), 0);
  const right = Math.min(xOf(scene, scene.range.end), scene.width);
  if (right <= left) return;
  context.fillStyle = scene.colors.accent;
  context.fillRect(left, height - 3, right - left, 3);
  const label = shortNs(scene.range.end - scene.range.start);
  const room = context.measureText(label).width + 10;
  const at = Math.min(Math.max((left + right - room) / 2, 0), scene.width - room);
  context.fillStyle = scene.colors.panel;
  context.fillRect(at, 3, room, height - 8);
  context.fillStyle = scene.colors.accent;
  context.fillText(label, at + 5, height / 2 + 1);
}

/** Thin vertical lines at the ticks, below the slices. */
export function paintGrid(
  context: CanvasRenderingContext2D,
  camera: Camera,
  width: number,
  height: number,
  color: string,
): void {
  context.fillStyle = color;
  for (const { time } of ticks(camera, width)) {
    context.fillRect(Math.round(xOf({ camera, width }, time)), 0, 1, height);
  }
}

function xOf(scene: { camera: Camera; width: number }, time: number): number {
  const { start, end } = scene.camera;
  return ((time - start) / (end - start)) * scene.width;
}

function paintRange(context: CanvasRenderingContext2D, scene: OverlayScene): void {
  if (scene.range === null) return;
  const left = Math.max(xOf(scene, scene.range.start), -2);
  const right = Math.min(xOf(scene, scene.range.end), scene.width + 2);
  if (right <= left) return;
  context.fillStyle = scene.colors.rangeFill;
  context.fillRect(left, 0, right - left, scene.height);
  context.fillStyle = scene.colors.accent;
  context.fillRect(left, 0, 1, scene.height);
  context.fillRect(right - 1, 0, 1, scene.height);
}

function paintMatches(context: CanvasRenderingContext2D, scene: OverlayScene): void {
  context.fillStyle = scene.colors.accent;
  for (const match of scene.matches) {
    const left = xOf(scene, match.at_ns);
    const right = xOf(scene, match.at_ns + match.duration_ns);
    if (right < 0 || left > scene.width) continue;
    const y = laneY(scene.layout, scene.tracks, match.lane) - scene.scroll;
    const width = Math.max(right - left, 2);
    context.fillRect(left, y + LANE_HEIGHT - 4, width, 3);
    if (width < 4) context.fillRect(left, y, 2, LANE_HEIGHT - 2);
  }
}

function paintEvidence(context: CanvasRenderingContext2D, scene: OverlayScene): void {
  context.fillStyle = scene.colors.finding;
  context.strokeStyle = scene.colors.finding;
  for (const slice of scene.evidence) {
    const left = Math.max(xOf(scene, slice.at_ns), -4);
    const right = Math.min(xOf(scene, slice.at_ns + slice.duration_ns), scene.width + 4);
    if (right < 0 || left > scene.width) continue;
    const y = laneY(scene.layout, scene.tracks, slice.lane) - scene.scroll;
    context.lineWidth = 2;
    context.strokeRect(left, y, Math.max(right - left, 2), LANE_HEIGHT - 2);
    context.fillRect(left - 1, y - 4, Math.max(right - left, 2) + 2, 3);
  }
  context.lineWidth = 1;
}

function paintMarks(context: CanvasRenderingContext2D, scene: OverlayScene): void {
  context.font = "bold 10px system-ui, sans-serif";
  context.textBaseline = "top";
  scene.marks.forEach((time, index) => {
    const x = Math.round(xOf(scene, time));
    context.fillStyle = scene.colors.text;
    context.setLineDash([4, 3]);
    context.strokeStyle = scene.colors.text;
    context.beginPath();
    context.moveTo(x + 0.5, 0);
    context.lineTo(x + 0.5, scene.height);
    context.stroke();
    context.setLineDash([]);
    context.fillText(`${index + 1}`, x + 4, 2);
  });
}

function paintFrame(
  context: CanvasRenderingContext2D,
  scene: OverlayScene,
  at: SliceRef,
  color: string,
  lineWidth: number,
): void {
  const left = Math.max(xOf(scene, at.at_ns), -4);
  const right = Math.min(xOf(scene, at.at_ns + at.duration_ns), scene.width + 4);
  const y = laneY(scene.layout, scene.tracks, at.lane) - scene.scroll;
  context.lineWidth = lineWidth;
  context.strokeStyle = scene.colors.panel;
  context.strokeRect(left - 2, y - 1, Math.max(right - left, 2) + 4, LANE_HEIGHT);
  context.strokeStyle = color;
  context.strokeRect(left - 1, y, Math.max(right - left, 2) + 2, LANE_HEIGHT - 2);
  context.lineWidth = 1;
}

function paintArrow(
  context: CanvasRenderingContext2D,
  scene: OverlayScene,
  cause: SliceRef,
  effect: SliceRef,
): void {
  const fromX = xOf(scene, cause.at_ns + cause.duration_ns / 2);
  const toX = xOf(scene, effect.at_ns);
  const middle = LANE_HEIGHT / 2 - 1;
  const fromY = laneY(scene.layout, scene.tracks, cause.lane) - scene.scroll + middle;
  const toY = laneY(scene.layout, scene.tracks, effect.lane) - scene.scroll + middle;
  const bend = Math.min(Math.max(Math.abs(toX - fromX) * 0.4, 24), 140);
  context.strokeStyle = scene.colors.accent;
  context.fillStyle = scene.colors.accent;
  context.lineWidth = 1.5;
  context.beginPath();
  context.moveTo(fromX, fromY);
  context.bezierCurveTo(fromX + bend, fromY, toX - bend, toY, toX - 5, toY);
  context.stroke();
  context.beginPath();
  context.moveTo(toX, toY);
  context.lineTo(toX - 7, toY - 4);
  context.lineTo(toX - 7, toY + 4);
  context.fill();
  context.beginPath();
  context.arc(fromX, fromY, 2.5, 0, 7);
  context.fill();
  context.lineWidth = 1;
}
