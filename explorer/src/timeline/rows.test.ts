import { expect, it } from "vitest";
import { firstAfter, lanesOf, rectAt, type Rects } from "./rows";

function rects(rows: [lane: number, start: number, length: number][]): Rects {
  const lane = Uint32Array.from(rows, (row) => row[0]);
  return {
    lane,
    start: Float64Array.from(rows, (row) => row[1]),
    length: Float64Array.from(rows, (row) => row[2]),
    busy: Float64Array.from(rows, (row) => row[2]),
    count: Uint32Array.from(rows, () => 1),
    slice: Uint32Array.from(rows, (_, at) => at),
    kind: new Uint8Array(rows.length),
    name: new Uint32Array(rows.length),
    names: ["x"],
    shades: new Uint8Array(1),
    lanes: lanesOf(lane),
  };
}

const some = rects([
  [2, 0, 10],
  [2, 10, 0],
  [2, 30, 5],
  [7, 3, 4],
]);

it("lanes are stretches of rows", () => {
  expect([...some.lanes]).toEqual([
    [2, [0, 3]],
    [7, [3, 4]],
  ]);
  expect([...lanesOf([])]).toEqual([]);
});

it("finds the first that ends after a time", () => {
  expect([-5, 0, 9, 10, 29, 34, 35].map((time) => firstAfter(some, 0, 3, time))).toEqual([
    0, 0, 0, 2, 2, 2, 3,
  ]);
});

it("finds what is under the mouse, or next to it", () => {
  expect(rectAt(some, 2, 5, 0)).toBe(0);
  expect(rectAt(some, 2, 20, 1)).toBe(-1);
  expect(rectAt(some, 2, 28, 3)).toBe(2);
  expect(rectAt(some, 7, 5, 0)).toBe(3);
  expect(rectAt(some, 3, 5, 100)).toBe(-1);
});
