// JSON with times that a double cannot hold: nanoseconds since 1970 have 19 digits.

/** A time in ns: a bigint where a number would lose digits. */
export type Ns = number | bigint;

// Inside a string the quotes around a member's name are escaped, so this finds members only.
const TIMES = /"(\w+_ns)": ?(\[[-\d, ]*\]|-?\d{16,})(?=[,}\]\s])/g;
const LONG = /-?\d{16,}/g;

/** Parse a document; times that are too long for a number become bigints. */
export function parseJson<T>(text: string): T {
  const quoted = text.replace(
    TIMES,
    (_, key: string, value: string) => `"${key}":${value.replace(LONG, '"$&"')}`,
  );
  return JSON.parse(quoted, (key: string, value: unknown) =>
    key.endsWith("_ns") ? withTimes(value) : value,
  ) as T;
}

function withTimes(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withTimes);
  return typeof value === "string" ? BigInt(value) : value;
}

/** A time of a file as ns on the timeline's axis, where a number is exact up to 104 days. */
export function onAxis(time: Ns, zero: Ns): number {
  return Number(BigInt(time) - BigInt(zero));
}
