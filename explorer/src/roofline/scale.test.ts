import { expect, it } from "vitest";
import { logScale } from "./scale";

it("spans whole powers of ten", () => {
  const scale = logScale([3, 500], 0, 300);
  expect([scale?.low, scale?.high]).toEqual([1, 1000]);
  expect(scale?.ticks).toEqual([1, 10, 100, 1000]);
  expect(scale?.place(10)).toBeCloseTo(100);
  expect(scale?.place(1000)).toBeCloseTo(300);
});

it("leaves out what has no place, and has a length for one value", () => {
  expect(logScale([0, -1, Infinity], 0, 100)).toBeNull();
  expect(logScale([0, 10], 100, 0)?.ticks).toEqual([10, 100]);
  expect(logScale([10], 100, 0)?.place(10)).toBe(100);
});
