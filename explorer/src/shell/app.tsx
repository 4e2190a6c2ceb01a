// The frame of the page: name, views, search, theme, help.
import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type { About } from "../data/documents";
import { isReport } from "../data/embedded";
import { printable, shorten } from "../data/format";
import { loaded } from "../data/loaded";
import { MemoryView } from "../memory/memory";
import { Overview } from "../overview/overview";
import { RooflineView } from "../roofline/roofline";
import { SqlView } from "../sql/sql";
import { view } from "../state";
import { KernelsView } from "../tables/kernels";
import { OpsView } from "../tables/ops";
import { KEY_HELP } from "../timeline/keys";
import { TimelineView } from "../timeline/timeline";
import { VIEWS, type View } from "../url";
import { Banners } from "./banners";
import { When } from "./parts";
import { isTyping, Search } from "./search";
import { theme, toggleTheme } from "./theme";

const TITLES: Record<View, string> = {
  overview: "Overview",
  timeline: "Timeline",
  ops: "Ops",
  kernels: "Kernels",
  memory: "Memory",
  roofline: "Roofline",
  sql: "SQL",
};

/** A report holds no slices, so nothing that needs them. */
const SHOWN = isReport ? VIEWS.filter((name) => name !== "timeline" && name !== "sql") : VIEWS;

export function App(): JSX.Element {
  const help = useSignal(false);
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      if (isTyping(event.target) || event.ctrlKey || event.metaKey || event.altKey) return;
      const at = Number(event.key) - 1;
      if (event.key === "?") help.value = true;
      else if (SHOWN[at] !== undefined) view.value = SHOWN[at];
    };
    window.addEventListener("keydown", onKey);
    return () => window.removeEventListener("keydown", onKey);
  }, []);
  return (
    <When loaded={loaded<About>("about").value}>
      {(about) => (
        <>
          <Header about={about} onHelp={() => (help.value = true)} />
          <Banners about={about} />
          <main id="main" class={`view-${view.value}`} tabIndex={-1}>
            <CurrentView />
          </main>
          {help.value && <Help onClose={() => (help.value = false)} />}
        </>
      )}
    </When>
  );
}

function CurrentView(): JSX.Element {
  switch (view.value) {
    case "overview":
      return <Overview />;
    case "timeline":
      return <TimelineView />;
    case "ops":
      return <OpsView />;
    case "kernels":
      return <KernelsView />;
    case "memory":
      return <MemoryView />;
    case "roofline":
      return <RooflineView />;
    case "sql":
      return <SqlView />;
  }
}

function Header({ about, onHelp }: { about: About; onHelp: () => void }): JSX.Element {
  const file = printable(about.paths[0]?.split("/").pop() ?? "");
  const more = about.paths.length > 1 ? ` and ${about.paths.length - 1} more` : "";
  return (
    <header class="top">
      <a class="skip" href="#main" onClick={skip}>
        Skip to the content
      </a>
      <span class="brand" aria-label="trnscope">
        <i aria-hidden="true" />
        trnscope
      </span>
      <nav aria-label="Views">
        {SHOWN.map((name, at) => (
          <button
            key={name}
            type="button"
            aria-current={view.value === name ? "page" : undefined}
            title={`Key ${at + 1}`}
            onClick={() => (view.value = name)}
          >
            {TITLES[name]}
          </button>
        ))}
      </nav>
      <span class="file" title={about.paths.map(printable).join("\n")}>
        <bdi>{shorten(file, 44)}</bdi>
        {more}
      </span>
      {!isReport && <Search />}
      <button type="button" class="icon" onClick={toggleTheme} aria-label={themeLabel()}>
        {theme.value === "dark" ? "☀" : "☾"}
      </button>
      <button type="button" class="icon" onClick={onHelp} aria-label="Keys" title="Keys (?)">
        ?
      </button>
    </header>
  );
}

function skip(event: MouseEvent): void {
  event.preventDefault();
  document.getElementById("main")?.focus();
}

function themeLabel(): string {
  return theme.value === "dark" ? "Use light colours" : "Use dark colours";
}

function Help({ onClose }: { onClose: () => void }): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} onClose={onClose} aria-labelledby="help-title">
      <h2 id="help-title">Keys</h2>
      <table class="keys">
        <tbody>
          <tr>
            <th scope="row">{SHOWN.map((_, at) => at + 1).join(" ")}</th>
            <td>{SHOWN.map((name) => TITLES[name]).join(", ")}</td>
          </tr>
          {(isReport ? [] : KEY_HELP).map(({ keys, does }) => (
            <tr key={keys}>
              <th scope="row">{keys}</th>
              <td>{does}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <form method="dialog">
        <button type="submit" class="primary">
          Close
        </button>
      </form>
    </dialog>
  );
}
