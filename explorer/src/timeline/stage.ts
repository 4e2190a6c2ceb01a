// The timeline's canvases: sizes, frames, and the way from what should be shown to pixels.
import { effect, signal } from "@preact/signals";
import type { Tracks } from "../data/documents";
import { camera, marks, query, range } from "../state";
import { found } from "../search";
import { theme } from "../shell/theme";
import { between, clamp, whole, type Camera } from "./camera";
import {
  closedAtFirst,
  groupKey,
  LANE_HEIGHT,
  laneAt,
  laneRanges,
  laneY,
  layOut,
  trackKey,
  TrackList,
  visibleRows,
  type Layout,
} from "./layout";
import { evidence } from "./evidence";
import { Loader } from "./loader";
import { paintGrid, paintOverlay, paintRuler, type OverlayColors } from "./overlay";
import { paintSlices } from "./paint";
import { rectAt } from "./rows";
import { details } from "./selection";

export const RULER_HEIGHT = 28;
const MOVE_MS = 140;
/** How far from a slice the mouse may be and still mean it. */
const HIT_PX = 3;

export interface Hit {
  name: string;
  kind: number;
  start: number;
  length: number;
  busy: number;
  count: number;
  slice: number;
  source: number;
}

export class Stage {
  readonly loader = new Loader();
  readonly tracks: TrackList;
  readonly sources: string[];
  readonly lengthNs: number;
  readonly closed = signal<Set<string>>(new Set());
  readonly layout = signal<Layout>({ rows: [], height: 0, byKey: new Map() });
  readonly scroll = signal(0);
  readonly size = signal({ width: 0, height: 0 });
  readonly pointer = signal<number | null>(null);
  private frame = 0;
  private move: { from: Camera; to: Camera; begun: number } | null = null;

  constructor(frameDocument: Tracks) {
    this.tracks = new TrackList(frameDocument.tracks);
    this.sources = frameDocument.sources;
    this.lengthNs = frameDocument.axis.length_ns;
    this.closed.value = closedAtFirst(this.tracks.all);
    if (camera.value === null) camera.value = whole(this.lengthNs);
  }

  /** Draw whenever something that is shown changes. Returns what stops it. */
  start(canvases: Canvases): () => void {
    const stops = [
      effect(() => {
        this.layout.value = layOut(this.tracks.all, this.sources, this.closed.value);
      }),
      effect(() => {
        const at = camera.value;
        const rows = this.rowsInSight(this.size.value.height);
        if (at !== null) this.loader.want(at, laneRanges(rows), this.size.value.width);
      }),
      effect(() => {
        // Read all that the picture depends on, so that a change of any draws it again.
        void [camera.value, this.layout.value, this.scroll.value, this.size.value, range.value];
        void [this.loader.rects.value, this.pointer.value, details.value, marks.value];
        void [query.value, theme.value, found.value, evidence.value];
        this.schedule(canvases);
      }),
    ];
    return () => stops.forEach((stop) => stop());
  }

  /** Go to another stretch of time, in a short movement where the user allows it. */
  go(to: Camera): void {
    const target = clamp(to, this.lengthNs);
    const from = camera.value;
    if (from === null || matchMedia("(prefers-reduced-motion: reduce)").matches) {
      camera.value = target;
      return;
    }
    this.move = { from, to: target, begun: performance.now() };
    requestAnimationFrame(this.step);
  }

  /** Where the timeline is going, or is. */
  get destination(): Camera {
    return this.move?.to ?? camera.value ?? whole(this.lengthNs);
  }

  /** Go there at once: the mouse is dragging. */
  jump(to: Camera): void {
    this.move = null;
    camera.value = clamp(to, this.lengthNs);
  }

  timeAt(x: number): number {
    const at = camera.value ?? whole(this.lengthNs);
    return at.start + (x / Math.max(this.size.value.width, 1)) * (at.end - at.start);
  }

  /** The slice under a point of the canvas. */
  hit(x: number, y: number): Hit | null {
    const rects = this.loader.rects.value;
    const at = camera.value;
    const lane = laneAt(this.layout.value, y + this.scroll.value);
    if (rects === null || at === null || lane === null) return null;
    const slack = (HIT_PX / Math.max(this.size.value.width, 1)) * (at.end - at.start);
    const found = rectAt(rects, lane, this.timeAt(x), slack);
    if (found < 0) return null;
    return {
      name: rects.names[rects.name[found]],
      kind: rects.kind[found],
      start: rects.start[found],
      length: rects.length[found],
      busy: rects.busy[found],
      count: rects.count[found],
      slice: rects.slice[found],
      source: this.tracks.at(lane)?.source ?? 0,
    };
  }

  /** Open or close a track or a group. */
  toggle(key: string): void {
    const next = new Set(this.closed.value);
    if (!next.delete(key)) next.add(key);
    this.closed.value = next;
  }

  /** Open what holds a lane; returns how far to scroll to see it, or null where it is in sight. */
  reveal(lane: number): number | null {
    const track = this.tracks.at(lane);
    if (track === null) return null;
    const closed = this.closed.peek();
    const hidden = closed.has(trackKey(track)) && lane !== track.first_lane;
    let layout = this.layout.peek();
    if (hidden || closed.has(groupKey(track))) {
      const open = new Set(closed);
      open.delete(groupKey(track));
      open.delete(trackKey(track));
      this.closed.value = open;
      layout = layOut(this.tracks.all, this.sources, open);
    }
    const y = laneY(layout, this.tracks, lane);
    const { height } = this.size.peek();
    const top = this.scroll.peek();
    const inSight = y >= top && y + LANE_HEIGHT <= top + height;
    return inSight ? null : Math.max(0, y - height / 2);
  }

  rowsInSight(height: number): ReturnType<typeof visibleRows> {
    const top = this.scroll.value;
    return visibleRows(this.layout.value, top, top + height);
  }

  private step = (now: number): void => {
    if (this.move === null) return;
    const share = Math.min((now - this.move.begun) / MOVE_MS, 1);
    const eased = 1 - Math.pow(1 - share, 3);
    camera.value = share === 1 ? this.move.to : between(this.move.from, this.move.to, eased);
    if (share === 1) this.move = null;
    else requestAnimationFrame(this.step);
  };

  private schedule(canvases: Canvases): void {
    if (this.frame !== 0) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      this.draw(canvases);
    });
  }

  private draw(canvases: Canvases): void {
    const at = camera.peek();
    const { width, height } = this.size.peek();
    if (at === null || width < 1) return;
    const colors = overlayColors(canvases.base);
    const rows = this.rowsInSight(height);
    const base = fitted(canvases.base, width, height);
    paintGrid(base, at, width, height, colors.line);
    paintBands(base, rows, this.scroll.peek(), width, colors.raised);
    const rects = this.loader.rects.peek();
    if (rects !== null) {
      const scroll = this.scroll.peek();
      const text = query.peek().trim().toLowerCase();
      paintSlices(base, { camera: at, rows, rects, scroll, width, height, query: text });
    }
    const scene = {
      camera: at,
      layout: this.layout.peek(),
      tracks: this.tracks,
      scroll: this.scroll.peek(),
      width,
      height,
      details: details.peek(),
      matches: found.peek()?.slices ?? [],
      range: range.peek(),
      marks: marks.peek(),
      evidence: evidence.peek(),
      pointer: this.pointer.peek(),
      colors,
    };
    paintOverlay(fitted(canvases.overlay, width, height), scene);
    paintRuler(fitted(canvases.ruler, width, RULER_HEIGHT), scene, RULER_HEIGHT);
  }
}

export interface Canvases {
  ruler: HTMLCanvasElement;
  base: HTMLCanvasElement;
  overlay: HTMLCanvasElement;
}

function paintBands(
  context: CanvasRenderingContext2D,
  rows: ReturnType<typeof visibleRows>,
  scroll: number,
  width: number,
  color: string,
): void {
  context.fillStyle = color;
  for (const row of rows) {
    if (row.type === "group") context.fillRect(0, row.y - scroll, width, row.height - 3);
  }
}

// An empty canvas, as sharp as the screen, whose units are CSS pixels.
function fitted(
  canvas: HTMLCanvasElement,
  width: number,
  height: number,
): CanvasRenderingContext2D {
  const scale = devicePixelRatio || 1;
  const [w, h] = [Math.round(width * scale), Math.round(height * scale)];
  if (canvas.width !== w || canvas.height !== h) {
    canvas.width = w;
    canvas.height = h;
  }
  const context = canvas.getContext("2d");
  if (context === null) throw new Error("this browser draws no 2D canvas");
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.clearRect(0, 0, width, height);
  return context;
}

function overlayColors(element: Element): OverlayColors {
  const style = getComputedStyle(element);
  const color = (name: string): string => style.getPropertyValue(`--${name}`).trim();
  return {
    accent: color("accent"),
    text: color("text"),
    muted: color("muted"),
    line: color("line"),
    panel: color("panel"),
    raised: color("raised"),
    rangeFill: color("range-fill"),
    finding: color("finding"),
  };
}
