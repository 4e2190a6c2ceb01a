import { expect, it } from "vitest";
import { keepSaved, readSaved, withQuery } from "./saved";

it("keeps a query and gives it back, the newest of a name in front", () => {
  const kept: Record<string, string> = {};
  const storage = {
    getItem: (key: string) => kept[key] ?? null,
    setItem: (key: string, value: string) => void (kept[key] = value),
  };
  const first = withQuery([], { name: "a", text: "SELECT 1" });
  const both = withQuery(withQuery(first, { name: "b", text: "SELECT 2" }), {
    name: "a",
    text: "SELECT 3",
  });
  expect(keepSaved(both, storage)).toBe(true);
  expect(readSaved(storage)).toEqual([
    { name: "a", text: "SELECT 3" },
    { name: "b", text: "SELECT 2" },
  ]);
});

it.each([null, "{", "7", '[{"name": 3}, null, {"name": "a", "text": "SELECT 1"}]'])(
  "reads %j without failing",
  (text) => {
    const expected = text?.startsWith("[") ? [{ name: "a", text: "SELECT 1" }] : [];
    expect(readSaved({ getItem: () => text })).toEqual(expected);
  },
);
