// The timeline: tracks on the left, slices on canvases, details of what is chosen below.
import { effect, useSignal, type Signal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useMemo, useRef } from "preact/hooks";
import type { Tracks } from "../data/documents";
import { formatNs, plural, printable, shorten } from "../data/format";
import { loaded } from "../data/loaded";
import { Name, Problem, When } from "../shell/parts";
import { isTyping } from "../shell/search";
import { camera, finding, range, selected } from "../state";
import { whole, zoomAt } from "./camera";
import { familiesOf, familyColor } from "./colors";
import { DetailsPanel } from "./details";
import { explanation, showFinding } from "./evidence";
import { onKey } from "./keys";
import { LABELS_WIDTH, Labels } from "./labels";
import { listen, type Hover } from "./pointer";
import { RangePanel } from "./range";
import { details } from "./selection";
import { RULER_HEIGHT, Stage, type Canvases } from "./stage";

export function TimelineView(): JSX.Element {
  return (
    <When loaded={loaded<Tracks>("tracks").value}>{(tracks) => <Ready tracks={tracks} />}</When>
  );
}

let lastStage: Stage | null = null;

// Coming back to the timeline finds it as it was left.
function stageFor(tracks: Tracks): Stage {
  if (lastStage === null || lastStage.tracks.all !== tracks.tracks) lastStage = new Stage(tracks);
  return lastStage;
}

function Ready({ tracks }: { tracks: Tracks }): JSX.Element {
  const stage = useMemo(() => stageFor(tracks), [tracks]);
  if (tracks.tracks.length === 0) {
    return <p class="empty">This profile holds no slices, so there is nothing to draw.</p>;
  }
  return (
    <div class="timeline">
      <Toolbar stage={stage} isCommon={tracks.axis.is_common} />
      <Canvas stage={stage} />
      {(selected.value !== null || range.value !== null) && (
        <div class="drawer">
          {selected.value !== null && <DetailsPanel />}
          {range.value !== null && <RangePanel />}
        </div>
      )}
    </div>
  );
}

function Toolbar({ stage, isCommon }: { stage: Stage; isCommon: boolean }): JSX.Element {
  const at = camera.value;
  const middle = at === null ? 0 : (at.start + at.end) / 2;
  return (
    <div class="toolbar" role="toolbar" aria-label="Timeline">
      <button type="button" onClick={() => stage.go(whole(stage.lengthNs))} title="F">
        Whole profile
      </button>
      <button
        type="button"
        aria-label="Zoom in"
        title="W"
        onClick={() => stage.go(zoomAt(stage.destination, middle, 0.5))}
      >
        +
      </button>
      <button
        type="button"
        aria-label="Zoom out"
        title="S"
        onClick={() => stage.go(zoomAt(stage.destination, middle, 2))}
      >
        −
      </button>
      <span class="note on-screen">
        {at && `${formatNs(Math.round(at.end - at.start))} on screen`}
      </span>
      <FindingChoice />
      {!isCommon && <span class="warn">These files share no clock: each begins at 0.</span>}
      <ul class="legend" aria-label="Colours">
        {familiesOf(stage.loader.kinds.value).map(([family, word]) => (
          <li key={family}>
            <i style={{ background: familyColor(family) }} />
            {word}
          </li>
        ))}
      </ul>
    </div>
  );
}

/** Which finding is marked; nothing where there is none to choose. */
function FindingChoice(): JSX.Element | null {
  const found = explanation();
  if (found.state !== "ready" || found.value.findings.length === 0) return null;
  return (
    <select
      aria-label="Finding to mark"
      value={finding.value === null ? "" : `${finding.value}`}
      onChange={(event) => {
        const value = event.currentTarget.value;
        if (value === "") finding.value = null;
        else showFinding(Number(value));
      }}
    >
      <option value="">no finding marked</option>
      {found.value.findings.map((each, at) => (
        <option key={each.code} value={`${at}`}>
          {shorten(`${at + 1}. ${printable(each.title)}`, 56)}
        </option>
      ))}
    </select>
  );
}

function Canvas({ stage }: { stage: Stage }): JSX.Element {
  const scroller = useRef<HTMLDivElement>(null);
  const pane = useRef<HTMLDivElement>(null);
  const ruler = useRef<HTMLCanvasElement>(null);
  const base = useRef<HTMLCanvasElement>(null);
  const overlay = useRef<HTMLCanvasElement>(null);
  const hover = useSignal<Hover | null>(null);
  useEffect(() => {
    const scroll = scroller.current;
    const element = pane.current;
    if (!scroll || !element || !ruler.current || !base.current || !overlay.current) return;
    const canvases: Canvases = {
      ruler: ruler.current,
      base: base.current,
      overlay: overlay.current,
    };
    const measure = (): void => {
      const height = Math.max(scroll.clientHeight - RULER_HEIGHT, 0);
      stage.size.value = { width: Math.max(scroll.clientWidth - LABELS_WIDTH, 0), height };
    };
    const resized = new ResizeObserver(measure);
    resized.observe(scroll);
    measure();
    scroll.scrollTop = stage.scroll.peek();
    const stops = [
      () => resized.disconnect(),
      stage.start(canvases),
      listen(element, stage, hover),
      listenToKeys(stage, scroll),
      followSelected(stage, scroll),
    ];
    return () => stops.forEach((stop) => stop());
  }, [stage]);
  const { width, height } = stage.size.value;
  const failure = stage.loader.failure.value;
  return (
    <div class="tracks-frame">
      {failure && <Problem error={failure} />}
      <div
        class="tracks"
        ref={scroller}
        onScroll={(event) => (stage.scroll.value = event.currentTarget.scrollTop)}
      >
        <div class="ruler-row">
          <div class="corner" style={{ width: `${LABELS_WIDTH}px` }}>
            {plural(stage.tracks.all.length, "track")}
          </div>
          <canvas ref={ruler} style={{ width: `${width}px`, height: `${RULER_HEIGHT}px` }} />
        </div>
        <div class="space" style={{ height: `${Math.max(stage.layout.value.height, height)}px` }}>
          <div
            class="pane"
            ref={pane}
            tabIndex={0}
            role="application"
            aria-label="Timeline of slices. Press ? for the keys; / searches; brackets step through slices."
            style={{
              height: `${height}px`,
              marginLeft: `${LABELS_WIDTH}px`,
              top: `${RULER_HEIGHT}px`,
            }}
          >
            <canvas ref={base} style={{ width: `${width}px`, height: `${height}px` }} />
            <canvas ref={overlay} style={{ width: `${width}px`, height: `${height}px` }} />
            <Tooltip hover={hover} width={width} />
          </div>
          <Labels stage={stage} />
        </div>
      </div>
    </div>
  );
}

// The selected slice is scrolled into sight, also when its details make the tracks' room smaller.
function followSelected(stage: Stage, scroll: HTMLElement): () => void {
  return effect(() => {
    const found = details.value;
    if (found === null || stage.size.value.height === 0) return;
    const top = stage.reveal(found.slice.lane);
    if (top !== null) requestAnimationFrame(() => scroll.scrollTo({ top }));
  });
}

// The timeline's keys work wherever the focus is, save in fields and on buttons that use them.
function listenToKeys(stage: Stage, scroll: HTMLElement): () => void {
  const handle = (event: KeyboardEvent): void => {
    if (isTyping(event.target) || document.querySelector("dialog[open]") !== null) return;
    if (onKey(event, stage, (px) => scroll.scrollBy({ top: px }))) event.preventDefault();
  };
  window.addEventListener("keydown", handle);
  return () => window.removeEventListener("keydown", handle);
}

function Tooltip({
  hover,
  width,
}: {
  hover: Signal<Hover | null>;
  width: number;
}): JSX.Element | null {
  const at = hover.value;
  if (at === null) return null;
  const { hit } = at;
  const left = Math.min(at.x + 14, Math.max(width - 330, 0));
  return (
    <div class="tooltip" style={{ left: `${left}px`, top: `${at.y + 18}px` }}>
      <Name text={hit.name} length={140} />
      <span class="note">
        {hit.count === 1
          ? formatNs(hit.length)
          : `the longest of ${plural(hit.count, "slice")}, ${formatNs(hit.busy)} in all; zoom in to tell them apart`}
      </span>
    </div>
  );
}
