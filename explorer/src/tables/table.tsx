// A table of any length: sorted by its headers, filtered by words, only what is in sight drawn.
import { useSignal } from "@preact/signals";
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { formatCount } from "../data/format";
import { csvOf, fileName, saveText } from "./csv";
import { filtered, sorted, windowOf, type Cell, type SortBy } from "./order";

const ROW_HEIGHT = 30;

export interface Column<Row> {
  key: string;
  title: string;
  /** What the figure means, and of what a share is. */
  help?: string;
  value: (row: Row) => Cell;
  show: (row: Row) => ComponentChildren;
  isNumber?: boolean;
}

export interface TableProps<Row> {
  caption: string;
  rows: readonly Row[];
  columns: Column<Row>[];
  /** A column that is none keeps the order of the rows. */
  initial: SortBy;
  /** What the filter looks at. */
  text: (row: Row) => string;
  /** Beside the filter. */
  tools?: ComponentChildren;
}

export function Table<Row>(props: TableProps<Row>): JSX.Element {
  const { rows, columns, text } = props;
  const sort = useSignal(props.initial);
  const filter = useSignal("");
  const scroll = useSignal(0);
  const height = useSignal(600);
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const element = box.current;
    if (element === null) return;
    const resized = new ResizeObserver(() => (height.value = element.clientHeight));
    resized.observe(element);
    return () => resized.disconnect();
  }, []);
  const column = columns.find((each) => each.key === sort.value.column);
  const shown = useMemo(() => {
    const left = filtered(rows, text, filter.value);
    return column ? sorted(left, column.value, sort.value.descending) : [...left];
  }, [rows, filter.value, column?.key, sort.value.descending]);
  const { first, end } = windowOf(shown.length, ROW_HEIGHT, scroll.value, height.value);
  return (
    <div class="table-view">
      <div class="toolbar">
        <input
          type="search"
          aria-label="Filter rows"
          placeholder="Filter rows"
          value={filter}
          onInput={(event) => (filter.value = event.currentTarget.value)}
          spellcheck={false}
        />
        {props.tools}
        <span class="note" role="status">
          {filter.value
            ? `${formatCount(shown.length)} of ${formatCount(rows.length)} rows`
            : `${formatCount(rows.length)} rows`}
        </span>
        <button
          type="button"
          onClick={() => saveText(`${fileName(props.caption)}.csv`, csvOf(shown, columns))}
        >
          CSV
        </button>
      </div>
      <div
        class="scroll"
        ref={box}
        tabIndex={0}
        role="region"
        aria-label={props.caption}
        onScroll={(event) => (scroll.value = event.currentTarget.scrollTop)}
      >
        <table aria-rowcount={shown.length + 1}>
          <caption class="hidden">{props.caption}</caption>
          <thead>
            <tr>
              {columns.map((each) => (
                <Header
                  key={each.key}
                  column={each}
                  sort={sort.value}
                  onSort={(next) => (sort.value = next)}
                />
              ))}
            </tr>
          </thead>
          <tbody>
            <Spacer rows={first} columns={columns.length} />
            {shown.slice(first, end).map((row, at) => (
              <tr key={first + at} aria-rowindex={first + at + 2}>
                {columns.map((each, index) =>
                  index === 0 ? (
                    <th key={each.key} scope="row">
                      {each.show(row)}
                    </th>
                  ) : (
                    <td key={each.key} class={each.isNumber ? "number" : undefined}>
                      {each.show(row)}
                    </td>
                  ),
                )}
              </tr>
            ))}
            <Spacer rows={shown.length - end} columns={columns.length} />
          </tbody>
        </table>
        {shown.length === 0 && <p class="note">No row matches.</p>}
      </div>
    </div>
  );
}

function Spacer({ rows, columns }: { rows: number; columns: number }): JSX.Element | null {
  if (rows <= 0) return null;
  return (
    <tr aria-hidden="true" class="spacer">
      <td colSpan={columns} style={{ height: `${rows * ROW_HEIGHT}px` }} />
    </tr>
  );
}

function Header<Row>(props: {
  column: Column<Row>;
  sort: SortBy;
  onSort: (next: SortBy) => void;
}): JSX.Element {
  const { column, sort, onSort } = props;
  const isSorted = sort.column === column.key;
  const direction = sort.descending ? "descending" : "ascending";
  const next = (): void =>
    onSort({
      column: column.key,
      descending: isSorted ? !sort.descending : column.isNumber === true,
    });
  return (
    <th
      scope="col"
      class={column.isNumber ? "number" : undefined}
      aria-sort={isSorted ? direction : undefined}
      title={column.help}
    >
      <button type="button" onClick={next}>
        {column.title}
        <i aria-hidden="true">{isSorted ? (sort.descending ? " ▾" : " ▴") : ""}</i>
      </button>
    </th>
  );
}

/** Choose what makes calls one row. */
export function GroupBy<T extends string>(props: {
  value: T;
  choices: readonly [T, string][];
  onChange: (value: T) => void;
}): JSX.Element {
  return (
    <label class="group-by">
      by{" "}
      <select
        aria-label="Group rows by"
        value={props.value}
        onChange={(event) => props.onChange(event.currentTarget.value as T)}
      >
        {props.choices.map(([value, title]) => (
          <option key={value} value={value}>
            {title}
          </option>
        ))}
      </select>
    </label>
  );
}
