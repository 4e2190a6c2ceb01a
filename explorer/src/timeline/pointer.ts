// The mouse on the timeline: hover, click to select, drag to take a range, wheel to move.
import type { Signal } from "@preact/signals";
import { camera, range, selected } from "../state";
import { around, pan, zoomAt, type Camera } from "./camera";
import type { Hit, Stage } from "./stage";

/** A press that moves less is a click. */
const CLICK_PX = 4;
const WHEEL_ZOOM = 0.0022;

export interface Hover {
  x: number;
  y: number;
  hit: Hit;
}

/** Listen on the element that holds the canvases. Returns what stops it. */
export function listen(
  element: HTMLElement,
  stage: Stage,
  hover: Signal<Hover | null>,
): () => void {
  const abort = new AbortController();
  const { signal } = abort;
  let drag: { x: number; camera: Camera; pans: boolean; moved: boolean } | null = null;
  const point = (event: MouseEvent): [number, number] => {
    const box = element.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };

  element.addEventListener(
    "pointerdown",
    (event) => {
      if (event.button > 1) return;
      const [x] = point(event);
      const pans = event.shiftKey || event.button === 1;
      drag = { x, camera: camera.value ?? stage.destination, pans, moved: false };
      element.setPointerCapture(event.pointerId);
    },
    { signal },
  );
  element.addEventListener(
    "pointermove",
    (event) => {
      const [x, y] = point(event);
      stage.pointer.value = stage.timeAt(x);
      if (drag === null) {
        const hit = stage.hit(x, y);
        hover.value = hit && { x, y, hit };
        return;
      }
      hover.value = null;
      drag.moved ||= Math.abs(x - drag.x) > CLICK_PX;
      if (!drag.moved) return;
      if (drag.pans) stage.jump(pan(drag.camera, (drag.x - x) / stage.size.value.width));
      else range.value = rangeBetween(stage, drag.x, x);
    },
    { signal },
  );
  element.addEventListener(
    "pointerup",
    (event) => {
      const [x, y] = point(event);
      if (drag !== null && !drag.moved && event.button === 0) click(stage, x, y);
      drag = null;
    },
    { signal },
  );
  element.addEventListener(
    "dblclick",
    (event) => {
      const hit = stage.hit(...point(event));
      if (hit !== null) stage.go(around(hit.start, hit.length));
    },
    { signal },
  );
  element.addEventListener(
    "pointerleave",
    () => {
      stage.pointer.value = null;
      hover.value = null;
    },
    { signal },
  );
  element.addEventListener(
    "wheel",
    (event) => {
      const [x] = point(event);
      const across = event.shiftKey ? event.deltaY : event.deltaX;
      if (event.ctrlKey || event.metaKey) {
        const factor = Math.exp(Math.max(-200, Math.min(event.deltaY, 200)) * WHEEL_ZOOM);
        stage.jump(zoomAt(stage.destination, stage.timeAt(x), factor));
      } else if (Math.abs(across) > Math.abs(event.shiftKey ? 0 : event.deltaY)) {
        stage.jump(pan(stage.destination, across / stage.size.value.width));
      } else return;
      event.preventDefault();
    },
    { signal, passive: false },
  );
  return () => abort.abort();
}

function click(stage: Stage, x: number, y: number): void {
  const hit = stage.hit(x, y);
  if (hit === null) {
    selected.value = null;
    range.value = null;
  } else {
    selected.value = { source: hit.source, slice: hit.slice };
  }
}

function rangeBetween(stage: Stage, x0: number, x1: number): { start: number; end: number } {
  const [low, high] = [Math.min(x0, x1), Math.max(x0, x1)];
  const start = Math.round(Math.max(0, stage.timeAt(low)));
  return { start, end: Math.max(start + 1, Math.round(stage.timeAt(high))) };
}
