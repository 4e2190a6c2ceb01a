import { expect, it } from "vitest";
import type { Track } from "../data/documents";
import {
  closedAtFirst,
  GROUP_HEIGHT,
  LANE_HEIGHT,
  laneAt,
  laneRanges,
  laneY,
  layOut,
  rowAt,
  TrackList,
  visibleRows,
} from "./layout";

const track = (group: string, first_lane: number, num_lanes: number): Track => ({
  source: 0,
  group,
  name: `track ${first_lane}`,
  is_device: false,
  first_lane,
  num_lanes,
  num_slices: 1,
});
const tracks = [track("gpu", 5, 2), track("cpu", 0, 3), track("cpu", 3, 2)];
const list = new TrackList(tracks);

it("every lane is found again where it is drawn", () => {
  const layout = layOut(tracks, ["a"], new Set());
  for (let lane = 0; lane < 7; lane++) {
    expect(laneAt(layout, laneY(layout, list, lane) + LANE_HEIGHT / 2)).toBe(lane);
  }
  expect(rowAt(layout, 1)?.type).toBe("group");
  expect(laneAt(layout, 1)).toBeNull();
  expect(laneAt(layout, layout.height + 1)).toBeNull();
});

it("closed tracks show one lane and closed groups none", () => {
  const layout = layOut(tracks, ["a"], new Set(["lane 0", "0|gpu"]));
  expect(layout.rows.map((row) => row.name)).toEqual(["gpu", "cpu", "track 0", "track 3"]);
  expect(laneY(layout, list, 2)).toBe(laneY(layout, list, 0));
  expect(laneY(layout, list, 6)).toBe(0);
  expect(laneRanges(layout.rows)).toBe("0,3-4");
});

it("only what is in sight is asked for", () => {
  const many = Array.from({ length: 1000 }, (_, at) => track("cpu", at, 1));
  const layout = layOut(many, ["a"], new Set());
  const rows = visibleRows(layout, 2000, 2100);
  expect(rows.length).toBeLessThan(8);
  for (const row of rows) {
    expect(row.y).toBeLessThan(2100);
    expect(row.y + row.height).toBeGreaterThan(2000);
  }
  expect(visibleRows(layout, 0, 1)[0].height).toBe(GROUP_HEIGHT);
});

it("several files are told apart in the groups' names", () => {
  const other = { ...track("gpu", 7, 1), source: 1 };
  const names = layOut([tracks[0], other], ["rank 0", "rank 1"], new Set()).rows.map((r) => r.name);
  expect(names).toEqual(["rank 0 › gpu", "track 5", "rank 1 › gpu", "track 7"]);
});

it("what comes after the first screens is closed at first", () => {
  const deep = [track("cpu", 0, 60), track("cpu", 60, 30), track("cpu", 90, 30)];
  expect([...closedAtFirst(deep)]).toEqual(["lane 90"]);
});
