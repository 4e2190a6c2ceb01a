import { expect, it } from "vitest";
import { csvOf, fileName } from "./csv";

const columns = [
  { title: "op", value: (row: [string, number | null]) => row[0] },
  { title: "self, ns", value: (row: [string, number | null]) => row[1] },
];

it("quotes what must be quoted, and leaves absent values empty", () => {
  expect(
    csvOf(
      [
        ['a "b", c', 12],
        ["plain", null],
      ],
      columns,
    ),
  ).toBe('op,"self, ns"\r\n"a ""b"", c",12\r\nplain,\r\n');
});

it("lets no name compute in a spreadsheet, and leaves negative numbers alone", () => {
  expect(csvOf([["=1+1", -3]], columns)).toBe('op,"self, ns"\r\n\'=1+1,-3\r\n');
});

it("names the file after the table", () => {
  expect(fileName("Memory of rank 0 cuda:0 by op")).toBe("memory-of-rank-0-cuda-0-by-op");
});
