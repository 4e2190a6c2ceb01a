// Sorting and filtering of rows that the server sent whole.

export type Cell = number | string | null;

export interface SortBy {
  column: string;
  descending: boolean;
}

/** Rows in order; absent values come last whichever way it goes, ties stay as they were. */
export function sorted<Row>(
  rows: readonly Row[],
  value: (row: Row) => Cell,
  descending: boolean,
): Row[] {
  const sign = descending ? -1 : 1;
  return [...rows].sort((a, b) => {
    const [x, y] = [value(a), value(b)];
    if (x === null || y === null) return x === y ? 0 : x === null ? 1 : -1;
    if (typeof x === "string" || typeof y === "string") {
      return sign * String(x).localeCompare(String(y), "en");
    }
    return sign * (x - y);
  });
}

/** Rows whose text contains every word of the filter, whatever its case. */
export function filtered<Row>(
  rows: readonly Row[],
  text: (row: Row) => string,
  filter: string,
): readonly Row[] {
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return rows;
  return rows.filter((row) => {
    const whole = text(row).toLowerCase();
    return words.every((word) => whole.includes(word));
  });
}

/** Which rows to put on the page of those that could be scrolled to. */
export function windowOf(
  count: number,
  rowHeight: number,
  scroll: number,
  height: number,
): { first: number; end: number } {
  const spare = 8;
  const first = Math.max(0, Math.floor(scroll / rowHeight) - spare);
  return { first, end: Math.min(count, Math.ceil((scroll + height) / rowHeight) + spare) };
}
