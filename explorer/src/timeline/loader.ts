// Keeps the rectangles of what is on screen at hand, with a margin so that panning is smooth.
import { signal } from "@preact/signals";
import { ApiError, getBytes, isAbort } from "../data/api";
import { asApiError } from "../data/loaded";
import type { Camera } from "./camera";
import { decodeRects, type Rects } from "./rows";

interface Request {
  lanes: string;
  start: number;
  end: number;
  /** ns a pixel. */
  resolution: number;
}

/** Beyond the screen, on each side, as a share of it. */
const MARGIN = 0.5;
const MAX_PIXELS = 12_000;
/** Pixels that one rectangle may stand for; the server takes the next smaller power of two of ns. */
const PX_PER_RECT = 2;

export class Loader {
  /** The newest answer; drawn until a better one is there. */
  readonly rects = signal<Rects | null>(null);
  /** Kinds of slices that were on screen so far. */
  readonly kinds = signal<ReadonlySet<number>>(new Set());
  readonly failure = signal<ApiError | null>(null);
  private have: Request | null = null;
  private asked: Request | null = null;
  private abort: AbortController | null = null;

  /** Tell what is on screen; asks the server when what is at hand does not do. */
  want(camera: Camera, lanes: string, width: number): void {
    if (width < 1) return;
    const resolution = (camera.end - camera.start) / width;
    if (serves(this.have, camera, lanes, resolution)) return;
    if (serves(this.asked, camera, lanes, resolution)) return;
    void this.ask(camera, lanes, resolution);
  }

  private async ask(camera: Camera, lanes: string, resolution: number): Promise<void> {
    this.abort?.abort();
    const abort = new AbortController();
    this.abort = abort;
    const request = widened(camera, lanes, resolution);
    this.asked = request;
    const px = Math.min(
      MAX_PIXELS,
      Math.ceil((request.end - request.start) / resolution / PX_PER_RECT),
    );
    const { start, end } = request;
    try {
      const path = `timeline?lanes=${lanes}&start=${start}&end=${end}&px=${Math.max(px, 1)}`;
      const rects = decodeRects(await getBytes(path, abort.signal));
      this.rects.value = rects;
      const kinds = new Set([...this.kinds.value, ...rects.kind]);
      if (kinds.size > this.kinds.value.size) this.kinds.value = kinds;
      this.have = request;
      this.failure.value = null;
    } catch (error) {
      if (!isAbort(error)) this.failure.value = asApiError(error);
    } finally {
      if (this.asked === request) this.asked = null;
    }
  }
}

function widened(camera: Camera, lanes: string, resolution: number): Request {
  const margin = (camera.end - camera.start) * MARGIN;
  const start = Math.floor(camera.start - margin);
  return { lanes, start, end: Math.max(Math.ceil(camera.end + margin), start + 1), resolution };
}

/** Whether an answer to a request shows all that is on screen, about as sharp as it can be. */
function serves(request: Request | null, camera: Camera, lanes: string, at: number): boolean {
  if (request === null || request.lanes !== lanes) return false;
  const covered = request.start <= camera.start && request.end >= camera.end;
  return covered && request.resolution <= at * 1.5 && request.resolution >= at / 3;
}
