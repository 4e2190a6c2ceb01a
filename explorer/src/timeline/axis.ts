// Ticks of the time axis.
import { shortNs } from "../data/format";
import type { Camera } from "./camera";

export interface Tick {
  time: number;
  label: string;
}

/** Round times on screen, about so many pixels apart. */
export function ticks(camera: Camera, width: number, spacing = 130): Tick[] {
  const step = roundStep(((camera.end - camera.start) * spacing) / Math.max(width, 1));
  const found: Tick[] = [];
  for (let at = Math.ceil(camera.start / step); at * step <= camera.end; at++) {
    const time = at === 0 ? 0 : at * step;
    found.push({ time, label: tickLabel(time, step) });
  }
  return found;
}

/** The smallest of 1, 2, 5, 10, 20 … that is not below `least`; never below 1 ns. */
export function roundStep(least: number): number {
  const power = Math.pow(10, Math.floor(Math.log10(Math.max(least, 1))));
  const digit = [1, 2, 5, 10].find((factor) => factor * power >= least * (1 - 1e-9)) ?? 10;
  return Math.max(1, Math.round(digit * power));
}

/** A time with as many digits as tell neighbours apart: "1.25 ms". */
export function tickLabel(time: number, step: number): string {
  if (time === 0) return "0";
  const size = Math.abs(time);
  const [unit, name] =
    size >= 1e9 ? [1e9, "s"] : size >= 1e6 ? [1e6, "ms"] : size >= 1e3 ? [1e3, "µs"] : [1, "ns"];
  if (unit === 1) return shortNs(time);
  const digits = Math.max(0, Math.ceil(Math.log10(unit as number) - Math.log10(step) - 1e-9));
  return `${(time / (unit as number)).toFixed(digits)} ${name}`;
}
