import { expect, it } from "vitest";
import type { BreakdownRow } from "../data/documents";
import { groupsOf, partColor, partKeys, partWord } from "./parts";

const row = (source: number, device: string | null, rank: number | null): BreakdownRow => ({
  source,
  rank,
  device,
  name: "step",
  start_ns: 0,
  duration_ns: 10,
  compute_ns: 4,
  brand_new_part_ns: 6,
});

it("parts are what the document holds, also those that are new", () => {
  expect(partKeys(row(0, null, null))).toEqual(["compute_ns", "brand_new_part_ns"]);
  expect(partWord("brand_new_part_ns")).toBe("brand new part");
  expect(partColor("brand_new_part_ns")).toBe(partColor("other_ns"));
});

it("rows are grouped by device and rank, in order", () => {
  const rows = [row(0, "cuda:0", 0), row(0, "cuda:1", 0), row(1, "cuda:0", 1), row(0, "cuda:0", 0)];
  const groups = groupsOf(rows);
  expect(groups.map((group) => group.title)).toEqual([
    "rank 0 cuda:0",
    "rank 0 cuda:1",
    "rank 1 cuda:0",
  ]);
  expect(groups[0].rows.length).toBe(2);
  expect(groupsOf([row(0, null, null)])[0].title).toBe("host");
});
