import { expect, it } from "vitest";
import { decodeState, encodeState, type PageState } from "./url";

const full: PageState = {
  view: "timeline",
  camera: { start: -5, end: 1000 },
  selected: { source: 1, slice: 42 },
  range: { start: 10, end: 20 },
  marks: [3, 7],
  query: "aten::mm & <x>",
  finding: 0,
};

it("leads back to the same view", () => {
  expect(decodeState(encodeState(full))).toEqual(full);
});

it("leaves out what is not set", () => {
  const empty = {
    ...full,
    camera: null,
    selected: null,
    range: null,
    marks: [],
    query: "",
    finding: null,
  };
  expect(encodeState(empty)).toBe("#timeline");
  expect(decodeState("#timeline")).toEqual(empty);
});

it.each(["", "#nonsense", "#ops?at=x_y&slice=1&range=5_5&marks=a", "#?%"])(
  "makes something sensible of %j",
  (hash) => {
    const state = decodeState(hash);
    expect(["overview", "ops"]).toContain(state.view);
    expect([state.camera, state.selected, state.range, state.marks]).toEqual([
      null,
      null,
      null,
      [],
    ]);
  },
);
