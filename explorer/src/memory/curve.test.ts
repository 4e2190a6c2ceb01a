import { expect, it } from "vitest";
import { curveOf } from "./curve";

it("holds a level until it changes", () => {
  const curve = curveOf(
    [
      [1000, 0],
      [1050, 400],
      [1100, 100],
    ],
    100,
    40,
  );
  expect(curve?.line).toBe("M0,40H50V0H100V30");
  expect(curve?.area).toBe("M0,40H50V0H100V30H100V40H0Z");
  expect(curve?.peak).toEqual({ at: 50, level: 0 });
});

it("draws one point, and nothing of nothing", () => {
  expect(curveOf([[7, 10]], 100, 40)?.line).toBe("M0,0");
  expect(curveOf([], 100, 40)).toBeNull();
});
