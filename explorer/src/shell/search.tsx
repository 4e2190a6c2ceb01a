// The search box: names are found by the server, the timeline shows where they are.
import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type { Found } from "../data/documents";
import { formatCount, plural, shortNs } from "../data/format";
import { current, found } from "../search";
import { query } from "../state";
import { goTo } from "../timeline/selection";
import { Name } from "./parts";

const LISTED = 60;

function step(by: number): void {
  const slices = found.value?.slices ?? [];
  if (slices.length === 0) return;
  current.value = (current.value + by + slices.length) % slices.length;
  goTo(slices[current.value]);
}

export function Search(): JSX.Element {
  const input = useRef<HTMLInputElement>(null);
  const open = useSignal(false);
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      if (event.key !== "/" || isTyping(event.target)) return;
      event.preventDefault();
      input.current?.focus();
      input.current?.select();
    };
    window.addEventListener("keydown", onKey);
    return () => window.removeEventListener("keydown", onKey);
  }, []);
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.key === "Enter") step(event.shiftKey ? -1 : 1);
    else if (event.key === "ArrowDown") step(1);
    else if (event.key === "ArrowUp") step(-1);
    else if (event.key === "Escape") {
      if (query.value === "") input.current?.blur();
      query.value = "";
    } else return;
    event.preventDefault();
  };
  return (
    <div
      class="search"
      role="search"
      onFocusIn={() => (open.value = true)}
      onFocusOut={(event) => {
        if (!event.currentTarget.contains(event.relatedTarget as Node)) open.value = false;
      }}
    >
      <input
        ref={input}
        type="search"
        aria-label="Search slices by name"
        aria-describedby="search-count"
        placeholder="Search names   ( / )"
        value={query}
        onInput={(event) => (query.value = event.currentTarget.value)}
        onKeyDown={onKeyDown}
        spellcheck={false}
        autocomplete="off"
      />
      <span id="search-count" class="search-count" role="status">
        {found.value && countText(found.value)}
      </span>
      {open.value && found.value && found.value.num_slices > 0 && <Matches found={found.value} />}
    </div>
  );
}

function countText({ num_slices }: Found): string {
  if (num_slices === 0) return "no match";
  const at = current.value < 0 ? "" : `${formatCount(current.value + 1)} of `;
  return `${at}${formatCount(num_slices)}`;
}

function Matches({ found }: { found: Found }): JSX.Element {
  return (
    <div class="matches">
      <p class="note">
        {plural(found.num_slices, "slice")} under {plural(found.num_names, "name")}; the first in
        time:
      </p>
      <ol>
        {found.slices.slice(0, LISTED).map((slice, at) => (
          <li key={`${slice.source}.${slice.slice}`}>
            <button
              type="button"
              aria-current={at === current.value}
              onClick={() => {
                current.value = at;
                goTo(slice);
              }}
            >
              <Name text={slice.name} length={64} />
              <span class="kind">{slice.kind}</span>
              <span class="number">{shortNs(slice.duration_ns)}</span>
            </button>
          </li>
        ))}
      </ol>
    </div>
  );
}

/** Whether a key belongs to a field that is being typed in. */
export function isTyping(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLInputElement ||
    target instanceof HTMLTextAreaElement ||
    target instanceof HTMLSelectElement
  );
}
