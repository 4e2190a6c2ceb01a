import { describe, expect, it } from "vitest";
import { formatNs, formatRatio, plural, printable, ratio, shorten, shortNs } from "./format";

describe("formatNs", () => {
  // Each line is what trnscope.model.units.format_ns prints.
  it.each([
    [0, "0 ns"],
    [999, "999 ns"],
    [1_000, "1.000 µs"],
    [136_713, "136.713 µs"],
    [1_062_500, "1.062 ms"],
    [1_187_500, "1.188 ms"],
    [1_000_500, "1.000 ms"],
    [1_001_500, "1.002 ms"],
    [222_409_123, "222.409 ms"],
    [3_097_000_000, "3.097 s"],
    [-1_062_500, "-1.062 ms"],
    [null, "-"],
  ])("%s", (ns, text) => expect(formatNs(ns)).toBe(text));
});

it("ratios are percentages of something", () => {
  expect(formatRatio(ratio(1, 3))).toBe("33.3 %");
  expect(formatRatio(0.1225)).toBe("12.2 %");
  expect(formatRatio(ratio(1, 0))).toBe("-");
});

it("short times have three digits", () => {
  expect([5, 1234, 25_440, 1.5e9].map(shortNs)).toEqual(["5 ns", "1.23 µs", "25.4 µs", "1.50 s"]);
});

it("counts agree with their nouns", () => {
  expect([plural(1, "slice"), plural(1200, "slice")]).toEqual(["1 slice", "1,200 slices"]);
});

describe("printable", () => {
  it("shows what would act on the page or hide", () => {
    expect(printable("a\u202eb\u0000c\u200bd\n")).toBe("a\\u202eb\\x00c\\u200bd\\x0a");
    expect(printable("\ud800x\udc00")).toBe("\\ud800x\\udc00");
  });
  it("leaves all other text as it is", () => {
    const text = "aten::mm <T, 4> ёж 漢字 😀 é";
    expect(printable(text)).toBe(text);
  });
});

it("shortens in the middle", () => {
  expect(shorten("abcdefghij", 5)).toBe("ab…ij");
  expect(shorten("abc", 3)).toBe("abc");
});
