// The slices that a finding is about, to be marked on the timeline.
import { computed, type ReadonlySignal } from "@preact/signals";
import type { Evidence, Explanation, SliceRef } from "../data/documents";
import { loaded } from "../data/loaded";
import { camera, finding, view } from "../state";

/** The doctor's findings; asked for when first looked at. */
export function explanation(): ReturnType<typeof loaded<Explanation>>["value"] {
  return loaded<Explanation>("explain").value;
}

/** What to mark: the evidence of the chosen finding. */
export const evidence: ReadonlySignal<SliceRef[]> = computed(() => {
  if (finding.value === null) return [];
  const found = loaded<Evidence>("evidence").value;
  return found.state === "ready" ? (found.value.findings[finding.value] ?? []) : [];
});

/** Mark a finding and show all of its evidence. */
export function showFinding(at: number): void {
  finding.value = at;
  view.value = "timeline";
  const stop = evidence.subscribe((slices) => {
    if (slices.length === 0) return;
    const start = Math.min(...slices.map((slice) => slice.at_ns));
    const end = Math.max(...slices.map((slice) => slice.at_ns + slice.duration_ns));
    const margin = Math.max((end - start) * 0.05, 1);
    camera.value = { start: start - margin, end: end + margin };
    queueMicrotask(() => stop());
  });
}
