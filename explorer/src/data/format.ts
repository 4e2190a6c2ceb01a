// Numbers for people, in the same words as the command line (model/units.py).

const STEPS: [number, string][] = [
  [1e9, "s"],
  [1e6, "ms"],
  [1e3, "µs"],
];

/** 1_234_567 → "1.235 ms"; absent → "-". */
export function formatNs(ns: number | null | undefined): string {
  if (ns === null || ns === undefined) return "-";
  for (const [step, unit] of STEPS) {
    if (Math.abs(ns) >= step) return `${toFixedHalfEven(ns / step, 3)} ${unit}`;
  }
  return `${Math.round(ns)} ns`;
}

/** A time for labels that have little room: "1.23 ms", "12.3 µs", "123 ns". */
export function shortNs(ns: number): string {
  for (const [step, unit] of STEPS) {
    if (Math.abs(ns) >= step) return `${(ns / step).toPrecision(3)} ${unit}`;
  }
  return `${Math.round(ns)} ns`;
}

const SIZES: [number, string][] = [
  [2 ** 40, "TiB"],
  [2 ** 30, "GiB"],
  [2 ** 20, "MiB"],
  [2 ** 10, "KiB"],
];

/** 69793218560 → "65.00 GiB"; absent → "-". */
export function formatBytes(size: number | null): string {
  if (size === null) return "-";
  for (const [step, unit] of SIZES) {
    if (Math.abs(size) >= step) return `${toFixedHalfEven(size / step, 2)} ${unit}`;
  }
  return `${size} B`;
}

const RATES: [number, string][] = [
  [1e15, "P"],
  [1e12, "T"],
  [1e9, "G"],
  [1e6, "M"],
  [1e3, "k"],
];

/** 611.3e12, "FLOP/s" → "611 TFLOP/s"; absent → "-". */
export function formatRate(value: number | null, unit: string): string {
  if (value === null) return "-";
  for (const [step, prefix] of RATES) {
    if (Math.abs(value) >= step) return `${Number((value / step).toPrecision(3))} ${prefix}${unit}`;
  }
  return `${Number(value.toPrecision(3))} ${unit}`;
}

/** 0.123 → "12.3 %"; absent → "-". */
export function formatRatio(ratio: number | null): string {
  return ratio === null ? "-" : `${toFixedHalfEven(ratio * 100, 1)} %`;
}

/** part / whole; absent where there is no whole. */
export function ratio(part: number, whole: number): number | null {
  return whole === 0 ? null : part / whole;
}

/** 1234 → "1,234". */
export function formatCount(count: number): string {
  return count.toLocaleString("en-US");
}

/** "1 kernel", "1,200 kernels". */
export function plural(count: number, noun: string, nouns = `${noun}s`): string {
  return `${formatCount(count)} ${count === 1 ? noun : nouns}`;
}

// toFixed rounds exact ties up, Python to even: the page must not differ from the terminal.
function toFixedHalfEven(value: number, digits: number): string {
  const exact = Math.abs(value).toFixed(20);
  const cut = exact.indexOf(".") + 1 + digits;
  const isTie = /^50*$/.test(exact.slice(cut));
  const isEven = Number(exact[cut - 1]) % 2 === 0;
  if (!isTie || !isEven) return value.toFixed(digits);
  return `${value < 0 ? "-" : ""}${exact.slice(0, cut)}`;
}

// What a screen would obey or hide: controls, bidirectional overrides, invisible characters.
const UNSAFE =
  /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\ud800-\udfff](?<![\ud800-\udbff][\udc00-\udfff])(?![\udc00-\udfff])/g;

/** A name from a trace with nothing in it that acts on the page: "\u202e" is shown as such. */
export function printable(text: string): string {
  return text.replace(UNSAFE, (char) => {
    const code = char.charCodeAt(0);
    return code < 0x100
      ? `\\x${code.toString(16).padStart(2, "0")}`
      : `\\u${code.toString(16).padStart(4, "0")}`;
  });
}

/** At most so many characters: the middle goes, both ends stay. */
export function shorten(text: string, length: number): string {
  if (text.length <= length) return text;
  const head = Math.floor((length - 1) / 2);
  return `${text.slice(0, head)}…${text.slice(text.length - (length - 1 - head))}`;
}
