// What binds an op, in words and in a colour.
import type { RooflineOp } from "../data/documents";

export type Bound = NonNullable<RooflineOp["bound"]>;

const WORDS: Record<Bound, string> = {
  compute: "arithmetic",
  memory: "memory bandwidth",
  neither: "neither",
  cache: "ran from caches",
  inconsistent: "rates that cannot be",
};
// Okabe and Ito's colours, which people with any colour vision tell apart.
const COLORS: Record<Bound, string> = {
  compute: "#0072b2",
  memory: "#d55e00",
  neither: "#8a8f98",
  cache: "#009e73",
  inconsistent: "#cc79a7",
};

export function boundWord(bound: Bound | null): string {
  return bound === null ? "not known" : WORDS[bound];
}

export function boundColor(bound: Bound | null): string {
  return bound === null ? "#8a8f98" : COLORS[bound];
}
