// The level of memory over time as the path of a picture.

export interface Point {
  at: number;
  level: number;
}

export interface Curve {
  /** The line: steps, because a level holds until it changes. */
  line: string;
  /** The same, closed at the bottom. */
  area: string;
  peak: Point;
}

/** The path in a box of this size; the top is the highest level, the bottom is zero. */
export function curveOf(
  level: readonly (readonly [number, number])[],
  width: number,
  height: number,
): Curve | null {
  if (level.length === 0) return null;
  const begin = level[0][0];
  const span = Math.max(level[level.length - 1][0] - begin, 1);
  const top = Math.max(...level.map(([, bytes]) => bytes), 1);
  const points = level.map(([time, bytes]) => ({
    at: round(((time - begin) / span) * width),
    level: round(height - (Math.max(bytes, 0) / top) * height),
  }));
  const first = points[0];
  const steps = points.slice(1).map((point) => `H${point.at}V${point.level}`);
  const line = `M${first.at},${first.level}${steps.join("")}`;
  const peak = points.reduce((best, point) => (point.level < best.level ? point : best));
  return { line, area: `${line}H${width}V${height}H${first.at}Z`, peak };
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
