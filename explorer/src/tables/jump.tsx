// A name in a table that leads to where it is on the timeline.
import type { JSX } from "preact";
import { isReport } from "../data/embedded";
import { Name } from "../shell/parts";
import { query, view } from "../state";

export function NameButton({ text, length }: { text: string; length?: number }): JSX.Element {
  if (isReport) return <Name text={text} length={length} />;
  return (
    <button
      type="button"
      class="ref"
      title="Find on the timeline"
      onClick={() => {
        query.value = text;
        view.value = "timeline";
      }}
    >
      <Name text={text} length={length} />
    </button>
  );
}
