import { expect, it } from "vitest";
import { around, between, clamp, pan, whole, zoomAt } from "./camera";

it("zooms around a time that keeps its place", () => {
  expect(zoomAt({ start: 0, end: 100 }, 25, 0.5)).toEqual({ start: 12.5, end: 62.5 });
});

it("never shows less than a few nanoseconds", () => {
  const near = zoomAt({ start: 0, end: 10 }, 5, 1e-9);
  expect(near.end - near.start).toBeCloseTo(5);
});

it("pans by a share of the screen", () => {
  expect(pan({ start: 0, end: 100 }, -0.2)).toEqual({ start: -20, end: 80 });
});

it("keeps the profile in sight", () => {
  expect(clamp({ start: 5000, end: 5100 }, 1000)).toEqual({ start: 910, end: 1010 });
  expect(clamp({ start: -900, end: -800 }, 1000)).toEqual({ start: -10, end: 90 });
  expect(clamp({ start: -1e9, end: 1e9 }, 1000)).toEqual({ start: -120, end: 1080 });
  expect(clamp(whole(1000), 1000)).toEqual(whole(1000));
});

it("leaves room around a slice, also around one without length", () => {
  expect(around(100, 100)).toEqual({ start: 60, end: 240 });
  const point = around(100, 0);
  expect(point.start).toBeLessThan(100);
  expect(point.end).toBeGreaterThan(100);
});

it("moves from one camera to the other", () => {
  const [from, to] = [
    { start: 0, end: 1000 },
    { start: 400, end: 410 },
  ];
  expect(between(from, to, 0)).toEqual(from);
  const last = between(from, to, 1);
  expect(last.start).toBeCloseTo(400);
  expect(last.end).toBeCloseTo(410);
  const half = between(from, to, 0.5);
  expect(half.end - half.start).toBeCloseTo(100);
  expect(half.start).toBeGreaterThan(0);
  expect(half.end).toBeLessThan(1000);
});
