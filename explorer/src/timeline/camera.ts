// The stretch of time on screen, and how it moves. Times are ns on the axis, as doubles.

export interface Camera {
  start: number;
  end: number;
}

/** Shortest stretch that can be shown: a nanosecond is then a few hundred pixels wide. */
const SHORTEST_NS = 5;

/** Zoom by a factor (below 1: closer) around a time that stays where it is. */
export function zoomAt(camera: Camera, time: number, factor: number): Camera {
  const length = camera.end - camera.start;
  const wanted = Math.max(length * factor, SHORTEST_NS);
  const share = (time - camera.start) / length;
  return { start: time - share * wanted, end: time + (1 - share) * wanted };
}

/** Move by a share of what is on screen. */
export function pan(camera: Camera, share: number): Camera {
  const by = (camera.end - camera.start) * share;
  return { start: camera.start + by, end: camera.end + by };
}

/** Keep the profile in sight: never more than a tenth of a screen beyond its ends. */
export function clamp(camera: Camera, lengthNs: number): Camera {
  const all = Math.max(lengthNs, SHORTEST_NS);
  const length = Math.min(camera.end - camera.start, all * 1.2);
  const margin = length * 0.1;
  const lowest = -margin;
  const highest = Math.max(all + margin - length, lowest);
  const start = Math.min(Math.max(camera.start, lowest), highest);
  return { start, end: start + length };
}

/** All of the profile, with a small margin. */
export function whole(lengthNs: number): Camera {
  const all = Math.max(lengthNs, SHORTEST_NS);
  return { start: -all * 0.01, end: all * 1.01 };
}

/** A stretch around a slice that leaves room on both sides. */
export function around(start: number, duration: number): Camera {
  const length = Math.max(duration, SHORTEST_NS);
  return { start: start - length * 0.4, end: start + length * 1.4 };
}

/** Where between two cameras: 0 is the first, 1 the second. */
export function between(from: Camera, to: Camera, share: number): Camera {
  // The length changes by a constant factor each frame, so that a zoom looks even.
  const a = from.end - from.start;
  const b = to.end - to.start;
  const length = a * Math.pow(b / a, share);
  const eased = Math.abs(b - a) < 1e-9 * a ? share : (length - a) / (b - a);
  const start = from.start + (to.start - from.start) * eased;
  return { start, end: start + length };
}
