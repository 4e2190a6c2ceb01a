// Small parts that several views share.
import type { ComponentChildren, JSX } from "preact";
import type { ApiError } from "../data/api";
import { printable, shorten } from "../data/format";
import type { Loaded } from "../data/loaded";

/** A name from a trace: nothing in it acts on the page, and all of it shows on hover. */
export function Name({ text, length = 120 }: { text: string; length?: number }): JSX.Element {
  const safe = printable(text);
  const short = shorten(safe, length);
  return (
    <bdi class="name" title={short === safe ? undefined : safe.slice(0, 2000)}>
      {short}
    </bdi>
  );
}

/** Why something cannot be shown, and what to do. */
export function Problem({ error }: { error: ApiError }): JSX.Element {
  return (
    <p class="problem" role="alert">
      <strong>{printable(error.message)}</strong>
      {error.hint && <> {printable(error.hint)}</>}
    </p>
  );
}

/** The content once its document is there; till then, or without it, what is the matter. */
export function When<T>(props: {
  loaded: Loaded<T>;
  children: (value: T) => ComponentChildren;
}): JSX.Element {
  const { loaded, children } = props;
  if (loaded.state === "loading") {
    return (
      <p class="loading" role="status">
        Reading …
      </p>
    );
  }
  if (loaded.state === "failed") return <Problem error={loaded.error} />;
  return <>{children(loaded.value)}</>;
}

/** A share as a thin bar; decoration beside a number that says the same. */
export function Meter({ share, color }: { share: number | null; color: string }): JSX.Element {
  const width = `${Math.min(Math.max((share ?? 0) * 100, 0), 100)}%`;
  return (
    <span class="meter" aria-hidden="true">
      <span style={{ width, background: color }} />
    </span>
  );
}

/** One framed part of a view. */
export function Card(props: {
  title: string;
  note?: ComponentChildren;
  children: ComponentChildren;
  class?: string;
}): JSX.Element {
  return (
    <section class={`card ${props.class ?? ""}`}>
      <header>
        <h2>{props.title}</h2>
        {props.note && <p class="note">{props.note}</p>}
      </header>
      {props.children}
    </section>
  );
}

/** A figure under its name, in a list of them. */
export function Figure(props: { name: string; value: string; help?: string }): JSX.Element {
  return (
    <div title={props.help}>
      <dt>{props.name}</dt>
      <dd>{props.value}</dd>
    </div>
  );
}
