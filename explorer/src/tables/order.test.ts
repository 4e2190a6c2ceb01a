import { expect, it } from "vitest";
import { filtered, sorted, windowOf } from "./order";

const rows = [{ v: 2 }, { v: null }, { v: 3 }, { v: 1 }];

it("absent values come last either way", () => {
  expect(sorted(rows, (row) => row.v, true).map((row) => row.v)).toEqual([3, 2, 1, null]);
  expect(sorted(rows, (row) => row.v, false).map((row) => row.v)).toEqual([1, 2, 3, null]);
});

it("ties stay as they were, text goes by the alphabet", () => {
  const names = [
    { k: 1, n: "b" },
    { k: 1, n: "a" },
  ];
  expect(sorted(names, (row) => row.k, true)).toEqual(names);
  expect(sorted(names, (row) => row.n, false)[0].n).toBe("a");
});

it("a filter wants all its words, whatever their case", () => {
  const texts = ["aten::Conv_backward", "aten::conv", "backward"];
  expect(filtered(texts, (text) => text, "CONV back")).toEqual(["aten::Conv_backward"]);
  expect(filtered(texts, (text) => text, "  ")).toBe(texts);
});

it("only rows near what is in sight are drawn", () => {
  expect(windowOf(10_000, 30, 30_000, 600)).toEqual({ first: 992, end: 1028 });
  expect(windowOf(5, 30, 0, 600)).toEqual({ first: 0, end: 5 });
});
