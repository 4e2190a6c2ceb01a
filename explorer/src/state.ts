// What the whole page shows. All of it is in the address, so that a link leads to the same view.
import { effect, signal } from "@preact/signals";
import type { Camera } from "./timeline/camera";
import { decodeState, encodeState, type View } from "./url";

export interface SliceId {
  source: number;
  slice: number;
}

export interface Range {
  start: number;
  end: number;
}

const initial = decodeState(location.hash);

export const view = signal<View>(initial.view);
/** The stretch of time that the timeline shows; null until it is known. */
export const camera = signal<Camera | null>(initial.camera);
export const selected = signal<SliceId | null>(initial.selected);
/** The range whose statistics are shown. */
export const range = signal<Range | null>(initial.range);
/** Marked times, ns on the axis. */
export const marks = signal<number[]>(initial.marks);
export const query = signal(initial.query);
/** Which of the doctor's findings is marked on the timeline. */
export const finding = signal<number | null>(initial.finding);

/** Keep the address up to date; the browser's back button leads through the views. */
export function followAddress(): void {
  let timer = 0;
  effect(() => {
    const hash = encodeState({
      view: view.value,
      camera: camera.value,
      selected: selected.value,
      range: range.value,
      marks: marks.value,
      query: query.value,
      finding: finding.value,
    });
    clearTimeout(timer);
    timer = window.setTimeout(() => history.replaceState(null, "", hash), 150);
  });
  window.addEventListener("hashchange", () => {
    const state = decodeState(location.hash);
    view.value = state.view;
    selected.value = state.selected;
    range.value = state.range;
    marks.value = state.marks;
    query.value = state.query;
    finding.value = state.finding;
    if (state.camera !== null) camera.value = state.camera;
  });
}

/** Show a stretch of time on the timeline. */
export function showTime(start: number, end: number): void {
  const margin = Math.max((end - start) * 0.05, 1);
  camera.value = { start: start - margin, end: end + margin };
  view.value = "timeline";
}
