// JSON with times that a double cannot hold: nanoseconds since 1970 have 19 digits.

/** A time in ns: a bigint where a number would lose digits. */
export type Ns = number | bigint;

// Inside a string the quotes around a member's name are escaped, so this finds members only.
const LONG_TIME = /"(\w+_ns)": ?(-?\d{16,})(?=[,}\]\s])/g;

/** Parse a document; members that end in _ns and are too long for a number become bigints. */
export function parseJson<T>(text: string): T {
  const quoted = text.replace(LONG_TIME, '"$1":"$2"');
  if (quoted === text) return JSON.parse(text) as T;
  return JSON.parse(quoted, (key: string, value: unknown) =>
    key.endsWith("_ns") && typeof value === "string" ? BigInt(value) : value,
  ) as T;
}

/** A time of a file as ns on the timeline's axis, where a number is exact up to 104 days. */
export function onAxis(time: Ns, zero: Ns): number {
  return Number(BigInt(time) - BigInt(zero));
}
