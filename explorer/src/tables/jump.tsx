// A name in a table that leads to where it is on the timeline.
import type { JSX } from "preact";
import { Name } from "../shell/parts";
import { query, view } from "../state";

export function NameButton({ text, length }: { text: string; length?: number }): JSX.Element {
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
