// The selected slice and the range: what is known of them, asked when they change.
import { effect, signal } from "@preact/signals";
import { getDocument, isAbort, type ApiError } from "../data/api";
import type { RangeReport, SliceDetails, SliceRef } from "../data/documents";
import { asApiError } from "../data/loaded";
import { camera, range, selected, view } from "../state";
import { around } from "./camera";

export const details = signal<SliceDetails | null>(null);
export const detailsFailure = signal<ApiError | null>(null);
export const rangeReport = signal<RangeReport | null>(null);
export const rangeFailure = signal<ApiError | null>(null);

/** Start asking; called once. */
export function followSelection(): void {
  effect(() => {
    const at = selected.value;
    return fetchInto(at && `slice/${at.source}/${at.slice}`, details, detailsFailure, 0);
  });
  effect(() => {
    const at = range.value;
    const path = at && `window?start=${Math.round(at.start)}&end=${Math.round(at.end)}`;
    return fetchInto(path, rangeReport, rangeFailure, DRAG_MS);
  });
}

/** A range that is being dragged is asked for when the mouse rests. */
const DRAG_MS = 120;

interface Box<T> {
  value: T;
}

// Asks for a document; returns what gives the request up.
function fetchInto<T>(
  path: string | null,
  result: Box<T | null>,
  failure: Box<ApiError | null>,
  delayMs: number,
): (() => void) | undefined {
  failure.value = null;
  if (path === null) {
    result.value = null;
    return undefined;
  }
  const abort = new AbortController();
  const ask = (): void => {
    getDocument<T>(path, abort.signal).then(
      (document) => (result.value = document),
      (error: unknown) => {
        if (isAbort(error)) return;
        result.value = null;
        failure.value = asApiError(error);
      },
    );
  };
  const timer = window.setTimeout(ask, delayMs);
  return () => {
    clearTimeout(timer);
    abort.abort();
  };
}

/** Select a slice; it is brought into sight when it is not. */
export function select(slice: SliceRef): void {
  selected.value = { source: slice.source, slice: slice.slice };
  const now = camera.value;
  const end = slice.at_ns + slice.duration_ns;
  const inSight = now !== null && end > now.start && slice.at_ns < now.end;
  const wide = now === null ? 0 : (slice.duration_ns / (now.end - now.start)) * 1000;
  if (!inSight || wide < 1) camera.value = placed(slice);
}

/** Select a slice and show the timeline around it. */
export function goTo(slice: SliceRef): void {
  selected.value = { source: slice.source, slice: slice.slice };
  camera.value = placed(slice);
  view.value = "timeline";
}

// Room for what came before and after: twenty times as long as the slice on both sides.
function placed(slice: SliceRef): { start: number; end: number } {
  const { start, end } = around(slice.at_ns, slice.duration_ns);
  const more = (end - start) * 5;
  return { start: start - more, end: end + more };
}
