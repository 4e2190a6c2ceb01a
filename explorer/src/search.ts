// What the search box finds: names are matched by the server.
import { effect, signal } from "@preact/signals";
import { getDocument, isAbort } from "./data/api";
import type { Found } from "./data/documents";
import { query } from "./state";

const WAIT_MS = 150;

export const found = signal<Found | null>(null);
/** Which match was gone to last; -1 before the first. */
export const current = signal(-1);

/** Keep the matches up to date; called once. */
export function followSearch(): void {
  effect(() => {
    const text = query.value.trim();
    current.value = -1;
    if (text === "") {
      found.value = null;
      return undefined;
    }
    const abort = new AbortController();
    const timer = window.setTimeout(() => {
      getDocument<Found>(`search?q=${encodeURIComponent(text)}`, abort.signal).then(
        (answer) => (found.value = answer),
        (error: unknown) => {
          if (!isAbort(error)) found.value = null;
        },
      );
    }, WAIT_MS);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  });
}
