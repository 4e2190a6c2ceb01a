// All about the selected slice: times, parents, arguments, and what it caused or was caused by.
import type { ComponentChildren, JSX } from "preact";
import type { Link, SliceDetails, SliceRef } from "../data/documents";
import { formatNs, printable } from "../data/format";
import { Name, Problem } from "../shell/parts";
import { range, selected } from "../state";
import { details, detailsFailure, goTo, select } from "./selection";

const LISTED = 40;

const RELATIONS: Record<string, [string, string]> = {
  launch: ["launched", "launched by"],
  op: ["called", "called by op"],
  fwdbwd: ["its backward", "its forward"],
};

export function DetailsPanel(): JSX.Element {
  const failure = detailsFailure.value;
  const found = details.value;
  return (
    <section class="panel details" aria-label="Selected slice">
      {failure && <Problem error={failure} />}
      {found && <Details found={found} />}
    </section>
  );
}

function Details({ found }: { found: SliceDetails }): JSX.Element {
  const { slice } = found;
  return (
    <>
      <header>
        <h2>
          <Name text={slice.name} length={180} />
        </h2>
        <span class="kind">{slice.kind}</span>
        <button type="button" onClick={() => goTo(slice)}>
          Show
        </button>
        <button
          type="button"
          disabled={slice.duration_ns === 0}
          onClick={() =>
            (range.value = { start: slice.at_ns, end: slice.at_ns + slice.duration_ns })
          }
        >
          Use as range
        </button>
        <button
          type="button"
          class="icon"
          aria-label="Close the details"
          onClick={() => (selected.value = null)}
        >
          ×
        </button>
      </header>
      <div class="columns">
        <dl tabIndex={0}>
          <Item name="Duration">{formatNs(slice.duration_ns)}</Item>
          <Item name="Own time">{formatNs(found.self_ns)}</Item>
          <Item name="Start">{formatNs(slice.at_ns)}</Item>
          <Item name="Track">
            <Name text={found.track} length={70} />
          </Item>
          <Item name="Category">{printable(found.category)}</Item>
          <Arguments found={found} />
        </dl>
        <div>
          <h3>Cause and effect</h3>
          <Links found={found} />
        </div>
        <div>
          <h3>Inside of</h3>
          {found.parents.length === 0 && <p class="note">Nothing; it is the outermost.</p>}
          <ul class="refs">
            {found.parents.map((parent) => (
              <li key={parent.slice}>
                <RefButton slice={parent} />
              </li>
            ))}
          </ul>
        </div>
      </div>
    </>
  );
}

function Item({ name, children }: { name: string; children: ComponentChildren }): JSX.Element {
  return (
    <>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </>
  );
}

function Arguments({ found }: { found: SliceDetails }): JSX.Element | null {
  if (found.args_problem !== null)
    return <Item name="Arguments">{printable(found.args_problem)}</Item>;
  if (found.args === null) return null;
  return (
    <>
      {argumentsOf(found.args).map(([key, value]) => (
        <Item key={key} name={printable(key)}>
          <span class="value">{printable(value)}</span>
        </Item>
      ))}
    </>
  );
}

// Values as the trace has them: numbers keep all their digits because they stay text.
function argumentsOf(text: string): [string, string][] {
  const keepDigits = text.replace(/([:[,]\s*)(-?\d{16,})(?=\s*[,\]}])/g, '$1"$2"');
  const args = JSON.parse(keepDigits) as Record<string, unknown>;
  return Object.entries(args).map(([key, value]) => [
    key,
    typeof value === "string" ? value : JSON.stringify(value),
  ]);
}

interface Line {
  link: Link;
  /** The op that made the call, where the call alone would say little. */
  op: SliceRef | undefined;
}

/** The links to list: a call that an op made is told with what the call launched. */
function linesOf(found: SliceDetails): Line[] {
  const at = found.slice.slice;
  const launches = found.links.filter(({ relation }) => relation === "launch");
  if (launches.some(({ cause, effect }) => cause.slice === at || effect.slice === at)) {
    return found.links.map((link) => ({ link, op: undefined }));
  }
  const calls = new Set(launches.map(({ cause }) => cause.slice));
  const ops = new Map(
    found.links
      .filter(({ relation }) => relation === "op")
      .map(({ cause, effect }) => [effect.slice, cause]),
  );
  return found.links
    .filter(({ relation, effect }) => relation !== "op" || !calls.has(effect.slice))
    .map((link) => ({ link, op: ops.get(link.cause.slice) }));
}

function Links({ found }: { found: SliceDetails }): JSX.Element {
  if (found.links.length === 0) {
    return <p class="note">No launch or flow of this slice is in the trace.</p>;
  }
  const lines = linesOf(found);
  const hidden = lines.length - LISTED + (found.num_links - found.links.length);
  return (
    <>
      <ul class="refs">
        {lines.slice(0, LISTED).map(({ link, op }, at) => (
          <LinkRow key={at} link={link} op={op} selected={found.slice} />
        ))}
      </ul>
      {hidden > 0 && <p class="note">… and {hidden} more</p>}
    </>
  );
}

function LinkRow(props: Line & { selected: SliceRef }): JSX.Element {
  const { link, op, selected: at } = props;
  const isCause = link.cause.slice === at.slice;
  const isEffect = link.effect.slice === at.slice;
  const [forward, backward] = RELATIONS[link.relation] ?? ["→", "←"];
  if (isCause || isEffect) {
    return (
      <li>
        <span class="relation">{isCause ? forward : backward}</span>
        <RefButton slice={isCause ? link.effect : link.cause} />
      </li>
    );
  }
  return (
    <li>
      <RefButton slice={op && op.slice !== at.slice ? op : link.cause} isShort />
      <span class="relation">{forward}</span>
      <RefButton slice={link.effect} />
    </li>
  );
}

function RefButton({ slice, isShort }: { slice: SliceRef; isShort?: boolean }): JSX.Element {
  return (
    <button type="button" class="ref" onClick={() => select(slice)} title={slice.kind}>
      <Name text={slice.name} length={44} />
      {!isShort && <span class="number">{formatNs(slice.duration_ns)}</span>}
    </button>
  );
}
