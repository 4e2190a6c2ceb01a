import { expect, it } from "vitest";
import { labelOf } from "./paint";

it("a name is cut to its room; the duration is added where both fit", () => {
  expect(labelOf("aten::mm", 25_440, 300)).toBe("aten::mm  25.4 µs");
  expect(labelOf("aten::mm", 25_440, 70)).toBe("aten::mm");
  expect(labelOf("aten::convolution_backward", 25_440, 70)).toBe("aten::con…");
});
