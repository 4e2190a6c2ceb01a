import { expect, it } from "vitest";
import { roundStep, tickLabel, ticks } from "./axis";

it("steps are round and not below what was asked for", () => {
  expect([0.2, 1, 1.1, 2, 3, 7, 11, 450, 1e6].map(roundStep)).toEqual([
    1, 1, 2, 2, 5, 10, 20, 500, 1e6,
  ]);
});

it("labels tell neighbours apart", () => {
  expect(tickLabel(1_250_000, 50_000)).toBe("1.25 ms");
  expect(tickLabel(0, 10)).toBe("0");
  const labels = ticks({ start: 103_000_000, end: 103_000_900 }, 1000).map(({ label }) => label);
  expect(new Set(labels).size).toBe(labels.length);
  expect(labels.length).toBeGreaterThan(4);
});

it("ticks lie on screen, evenly", () => {
  const found = ticks({ start: -7, end: 1013 }, 1300).map(({ time }) => time);
  expect(found).toEqual([0, 200, 400, 600, 800, 1000]);
});
