import { expect, it } from "vitest";
import { onAxis, parseJson } from "./json";

it("keeps all digits of times since 1970", () => {
  const text = '{"start_ns": 1716423322416788067, "duration_ns": 5, "zeros": [1]}';
  const found = parseJson<{ start_ns: bigint; duration_ns: number }>(text);
  expect(found.start_ns).toBe(1716423322416788067n);
  expect(found.duration_ns).toBe(5);
});

it("lists of times keep their digits too", () => {
  const found = parseJson<{ axis: { zeros_ns: (number | bigint)[] } }>(
    '{"axis": {"zeros_ns": [1716423322416788066, 0, -1716423322416788066]}}',
  );
  expect(found.axis.zeros_ns).toEqual([1716423322416788066n, 0, -1716423322416788066n]);
});

it("does not touch what names say", () => {
  const name = 'x "start_ns": 1716423322416788067, [1716423322416788067]';
  const found = parseJson<{ name: string; start_ns: bigint }>(
    JSON.stringify({ name, start_ns: 0 }).replace(":0}", ":1716423322416788067}"),
  );
  expect(found).toEqual({ name, start_ns: 1716423322416788067n });
});

it("puts times on the axis exactly", () => {
  expect(onAxis(1716423322416788067n, 1716423322416788066n)).toBe(1);
  expect(onAxis(7, 2)).toBe(5);
});
