// The names of groups and tracks beside the canvas; each opens and closes what it names.
import type { JSX } from "preact";
import { formatCount } from "../data/format";
import { Name } from "../shell/parts";
import type { Row } from "./layout";
import type { Stage } from "./stage";

export const LABELS_WIDTH = 220;

export function Labels({ stage }: { stage: Stage }): JSX.Element {
  const rows = stage.rowsInSight(stage.size.value.height);
  return (
    <div class="labels" style={{ width: `${LABELS_WIDTH}px` }}>
      {rows.map((row) => (
        <Label key={`${row.type}${row.key}`} row={row} onToggle={() => stage.toggle(row.key)} />
      ))}
    </div>
  );
}

function Label({ row, onToggle }: { row: Row; onToggle: () => void }): JSX.Element {
  const style = { top: `${row.y}px`, height: `${row.height - (row.type === "group" ? 3 : 5)}px` };
  const canToggle = row.type === "group" || row.track.num_lanes > 1;
  return (
    <div class={`label ${row.type}`} style={style}>
      <button type="button" onClick={onToggle} aria-expanded={row.open} disabled={!canToggle}>
        <i aria-hidden="true">{canToggle ? (row.open ? "▾" : "▸") : ""}</i>
        <Name text={row.name} length={80} />
        {row.type === "track" && (
          <span class="count" title="slices">
            {formatCount(row.track.num_slices)}
          </span>
        )}
      </button>
    </div>
  );
}
