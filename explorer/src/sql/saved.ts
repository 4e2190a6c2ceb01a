// Queries that come with the page, and those that the user keeps in this browser.

export interface SavedQuery {
  name: string;
  text: string;
}

export const EXAMPLES: SavedQuery[] = [
  {
    name: "Longest kernels",
    text: "SELECT name, count(*) AS calls, sum(dur_ns) AS ns\nFROM kernels GROUP BY name ORDER BY ns DESC LIMIT 50",
  },
  {
    name: "Ops by own CPU time",
    text: "SELECT name, count(*) AS calls, sum(self_ns) AS ns\nFROM ops GROUP BY name ORDER BY ns DESC LIMIT 50",
  },
  {
    name: "From op to device",
    text: "SELECT d.op_name, d.name, l.launch_delay_ns\nFROM launches l JOIN device_work d ON d.source = l.source AND d.id = l.device_slice\nORDER BY l.launch_delay_ns DESC LIMIT 50",
  },
];
const KEY = "trnscope.queries";
const MOST = 50;

/** What was kept; nothing where the browser keeps nothing, or something else lies there. */
export function readSaved(storage: Pick<Storage, "getItem"> = localStorage): SavedQuery[] {
  try {
    const found: unknown = JSON.parse(storage.getItem(KEY) ?? "[]");
    return Array.isArray(found) ? found.filter(isQuery) : [];
  } catch {
    return [];
  }
}

/** The list with this query in front; one of the same name gives way. */
export function withQuery(saved: readonly SavedQuery[], query: SavedQuery): SavedQuery[] {
  return [query, ...saved.filter((one) => one.name !== query.name)].slice(0, MOST);
}

/** Keep the list; false where the browser refuses. */
export function keepSaved(
  saved: SavedQuery[],
  storage: Pick<Storage, "setItem"> = localStorage,
): boolean {
  try {
    storage.setItem(KEY, JSON.stringify(saved));
    return true;
  } catch {
    return false;
  }
}

function isQuery(value: unknown): value is SavedQuery {
  const query = value as SavedQuery | null;
  return typeof query?.name === "string" && typeof query.text === "string";
}
