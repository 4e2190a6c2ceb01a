// One query over the documented views, as trnscope sql answers it.
import { signal, useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { ApiError, getDocument } from "../data/api";
import type { QueryAnswer, SqlCell } from "../data/documents";
import { formatCount, printable, shorten } from "../data/format";
import { asApiError } from "../data/loaded";
import { Problem } from "../shell/parts";
import { Table, type Column } from "../tables/table";
import { EXAMPLES, keepSaved, readSaved, withQuery } from "./saved";

const text = signal(EXAMPLES[0].text);
const answer = signal<QueryAnswer | null>(null);
const failure = signal<ApiError | null>(null);
const isRunning = signal(false);
const saved = signal(readSaved());

export function SqlView(): JSX.Element {
  return (
    <section class="view" aria-label="SQL">
      <Editor />
      {failure.value && <Problem error={failure.value} />}
      {answer.value && <Result answer={answer.value} />}
    </section>
  );
}

function Editor(): JSX.Element {
  const name = useSignal("");
  const keep = (): void => {
    const title = name.value.trim() || shorten(text.value.replace(/\s+/g, " "), 40);
    const next = withQuery(saved.value, { name: title, text: text.value });
    if (keepSaved(next)) saved.value = next;
    else failure.value = new ApiError("This browser keeps nothing for the page.", null);
    name.value = "";
  };
  return (
    <div class="sql">
      <textarea
        aria-label="Query"
        spellcheck={false}
        rows={5}
        value={text}
        onInput={(event) => (text.value = event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) void run();
        }}
      />
      <div class="toolbar">
        <button type="button" class="primary" disabled={isRunning.value} onClick={() => void run()}>
          {isRunning.value ? "Asking …" : "Run (Ctrl+Enter)"}
        </button>
        <select
          aria-label="Queries"
          value=""
          onChange={(event) => {
            const all = [...saved.value, ...EXAMPLES];
            text.value = all[Number(event.currentTarget.value)].text;
          }}
        >
          <option value="" disabled>
            Queries …
          </option>
          {[...saved.value, ...EXAMPLES].map((one, at) => (
            <option key={at} value={at}>
              {printable(one.name)}
            </option>
          ))}
        </select>
        <input
          type="text"
          aria-label="Name to keep the query under"
          placeholder="Name"
          value={name}
          onInput={(event) => (name.value = event.currentTarget.value)}
        />
        <button type="button" onClick={keep}>
          Keep
        </button>
        <span class="note">one SELECT; DESCRIBE ops lists the columns of a view</span>
      </div>
    </div>
  );
}

async function run(): Promise<void> {
  if (isRunning.value) return;
  isRunning.value = true;
  failure.value = null;
  try {
    answer.value = await getDocument<QueryAnswer>(`sql?q=${encodeURIComponent(text.value)}`);
  } catch (error) {
    answer.value = null;
    failure.value = asApiError(error);
  } finally {
    isRunning.value = false;
  }
}

function Result({ answer: shown }: { answer: QueryAnswer }): JSX.Element {
  const columns = shown.columns.map((name, at) => columnOf(name, at, shown.rows));
  return (
    <>
      <Table
        key={columns.map((column) => column.title).join()}
        caption="Rows of the query"
        rows={shown.rows}
        columns={columns}
        initial={{ column: "", descending: false }}
        text={(row) => row.map(String).join(" ")}
      />
      {shown.has_more && (
        <p class="note foot">
          There are more than these {formatCount(shown.rows.length)} rows; trnscope sql --limit 0
          prints all.
        </p>
      )}
    </>
  );
}

function columnOf(name: string, at: number, rows: SqlCell[][]): Column<SqlCell[]> {
  const isNumber = rows.some((row) => typeof row[at] === "number");
  return {
    key: String(at),
    title: printable(name),
    value: (row) => cellOf(row[at]),
    show: (row) => <bdi title={shownText(row[at], 2000)}>{shownText(row[at], 120)}</bdi>,
    isNumber,
  };
}

function cellOf(cell: SqlCell): number | string | null {
  return typeof cell === "boolean" ? String(cell) : cell;
}

function shownText(cell: SqlCell, length: number): string {
  return cell === null ? "NULL" : shorten(printable(String(cell)), length);
}
