// A table as a file for a spreadsheet.
import type { Cell } from "./order";

interface CsvColumn<Row> {
  title: string;
  value: (row: Row) => Cell;
}

/** RFC 4180; absent values are empty. Names that a spreadsheet would compute are kept as text. */
export function csvOf<Row>(rows: readonly Row[], columns: readonly CsvColumn<Row>[]): string {
  const lines = [
    columns.map((column) => quoted(column.title)),
    ...rows.map((row) => columns.map((column) => field(column.value(row)))),
  ];
  return lines.map((cells) => `${cells.join(",")}\r\n`).join("");
}

function field(cell: Cell): string {
  if (cell === null) return "";
  return typeof cell === "number" ? String(cell) : quoted(cell);
}

function quoted(text: string): string {
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** "Ops by name" → "ops-by-name". */
export function fileName(caption: string): string {
  return caption
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .replace(/^-|-$/g, "");
}

/** Let the browser save a text as a file. */
export function saveText(name: string, text: string): void {
  const address = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  URL.revokeObjectURL(address);
}
