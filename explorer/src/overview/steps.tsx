// Each step as a bar of what its time went to. A bar leads to the step on the timeline.
import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import type { Breakdown, BreakdownRow, Tracks } from "../data/documents";
import { isReport } from "../data/embedded";
import { formatNs, formatRatio, plural, printable, ratio, shortNs } from "../data/format";
import { onAxis } from "../data/json";
import { loaded } from "../data/loaded";
import { Card, Name } from "../shell/parts";
import { showTime } from "../state";
import { roundStep } from "../timeline/axis";
import { groupsOf, partColor, partKeys, partOf, partWord, type Group } from "./parts";

const SHOWN = 240;
/** So many steps have room for a line each, with their names. */
const FEW = 8;
const PLOT_HEIGHT = 190;

export function StepsCard({ breakdown }: { breakdown: Breakdown }): JSX.Element {
  const groups = groupsOf(breakdown.rows);
  const chosen = useSignal(0);
  if (groups.length === 0) {
    return (
      <Card title="Steps">
        <p class="note">There is no time to account for: no slices with a duration were read.</p>
      </Card>
    );
  }
  const group = groups[Math.min(chosen.value, groups.length - 1)];
  const whose =
    breakdown.basis === "device" ? "what the device did or waited for" : "what the host did";
  return (
    <Card
      title="Steps"
      note={`Each step, by ${whose}.${isReport ? "" : " Choose one to see it on the timeline."}`}
      class="wide"
    >
      {groups.length > 1 && (
        <label class="group-by">
          of{" "}
          <select
            value={chosen.value}
            onChange={(event) => (chosen.value = Number(event.currentTarget.value))}
          >
            {groups.map((each, at) => (
              <option key={each.key} value={at}>
                {each.title}
              </option>
            ))}
          </select>
        </label>
      )}
      <StepBars key={group.key} group={group} />
    </Card>
  );
}

function StepBars({ group }: { group: Group }): JSX.Element {
  const focus = useSignal(-1);
  const rows = group.rows.slice(0, SHOWN);
  const keys = partKeys(group.rows[0]);
  const longest = Math.max(...rows.map((row) => row.duration_ns), 1);
  const inFocus: BreakdownRow | undefined = rows[focus.value];
  const bar = (
    row: BreakdownRow,
    at: number,
    top: number,
    side: "width" | "height",
  ): JSX.Element => (
    <Bar
      row={row}
      keys={keys}
      style={{ [side]: `${(row.duration_ns / top) * 100}%` }}
      onFocus={() => (focus.value = at)}
      onBlur={() => (focus.value = -1)}
    />
  );
  return (
    <>
      {rows.length <= FEW ? (
        <ul class="bars few" aria-label={`Steps of ${group.title}`}>
          {rows.map((row, at) => (
            <li key={at}>
              <span class="step-name">
                <Name text={row.name} length={28} />
              </span>
              <span class="bar-room">{bar(row, at, longest, "width")}</span>
              <span class="number">{formatNs(row.duration_ns)}</span>
            </li>
          ))}
        </ul>
      ) : (
        <Columns rows={rows} longest={longest} title={group.title} bar={bar} />
      )}
      {group.rows.length > SHOWN && (
        <p class="note">
          The first {SHOWN} of {plural(group.rows.length, "step")} are drawn.
        </p>
      )}
      <Legend
        rows={inFocus ? [inFocus] : group.rows}
        keys={keys}
        title={inFocus ? inFocus.name : meanTitle(group)}
      />
    </>
  );
}

/** Many steps: columns over an axis. */
function Columns(props: {
  rows: BreakdownRow[];
  longest: number;
  title: string;
  bar: (row: BreakdownRow, at: number, top: number, side: "width" | "height") => JSX.Element;
}): JSX.Element {
  const step = roundStep(props.longest / 5);
  const top = Math.ceil(props.longest / step) * step;
  const lines = Array.from({ length: Math.round(top / step) + 1 }, (_, at) => at * step);
  return (
    <div class="chart">
      <div class="y-axis" aria-hidden="true" style={{ height: `${PLOT_HEIGHT}px` }}>
        {lines.map((value) => (
          <span key={value} style={{ bottom: `${(value / top) * 100}%` }}>
            {value === 0 ? "0" : shortNs(value).replace(/\.0+ | (?=\D)/, " ")}
          </span>
        ))}
      </div>
      <div class="plot" style={{ height: `${PLOT_HEIGHT}px` }}>
        {lines.map((value) => (
          <i key={value} class="grid" style={{ bottom: `${(value / top) * 100}%` }} />
        ))}
        <ul class="bars" aria-label={`Steps of ${props.title}`}>
          {props.rows.map((row, at) => (
            <li key={at}>{props.bar(row, at, top, "height")}</li>
          ))}
        </ul>
      </div>
    </div>
  );
}

function meanTitle(group: Group): string {
  return group.rows.length === 1
    ? group.rows[0].name
    : `Mean of ${plural(group.rows.length, "step")}`;
}

function Bar(props: {
  row: BreakdownRow;
  keys: `${string}_ns`[];
  style: Record<string, string>;
  onFocus: () => void;
  onBlur: () => void;
}): JSX.Element {
  const { row, keys, style, onFocus, onBlur } = props;
  const parts = keys.filter((key) => partOf(row, key) > 0);
  const words = parts.map((key) => `${partWord(key)} ${formatNs(partOf(row, key))}`).join(", ");
  return (
    <button
      type="button"
      class="bar"
      aria-label={`${printable(row.name)}, ${formatNs(row.duration_ns)}: ${words}`}
      style={style}
      onClick={() => openStep(row)}
      onFocus={onFocus}
      onBlur={onBlur}
      onMouseEnter={onFocus}
      onMouseLeave={onBlur}
    >
      {parts.map((key) => (
        <span
          key={key}
          style={{ flexGrow: partOf(row, key) / row.duration_ns, background: partColor(key) }}
        />
      ))}
    </button>
  );
}

function openStep(row: BreakdownRow): void {
  if (isReport) return;
  const tracks = loaded<Tracks>("tracks");
  const show = (): boolean => {
    const found = tracks.value;
    if (found.state !== "ready") return false;
    const start = onAxis(row.start_ns, found.value.axis.zeros_ns[row.source]);
    showTime(start, start + row.duration_ns);
    return true;
  };
  if (show()) return;
  const stop = tracks.subscribe(() => {
    if (show()) queueMicrotask(() => stop());
  });
}

function Legend(props: {
  rows: BreakdownRow[];
  keys: `${string}_ns`[];
  title: string;
}): JSX.Element {
  const { rows, keys, title } = props;
  const whole = rows.reduce((sum, row) => sum + row.duration_ns, 0);
  return (
    <table class="parts">
      <caption>
        {printable(title)}: <strong>{formatNs(Math.floor(whole / rows.length))}</strong>
      </caption>
      <tbody>
        {keys.map((key) => {
          const part = rows.reduce((sum, row) => sum + partOf(row, key), 0);
          return (
            <tr key={key} class={part === 0 ? "none" : undefined}>
              <th scope="row">
                <i style={{ background: partColor(key) }} />
                {partWord(key)}
              </th>
              <td class="number">{formatNs(Math.floor(part / rows.length))}</td>
              <td class="number">{formatRatio(ratio(part, whole))}</td>
            </tr>
          );
        })}
      </tbody>
    </table>
  );
}
