// Colours of slices by what they are; the palette is told apart with any colour vision.

/** Kinds by their number (trnscope.model.kinds.SliceKind). */
const FAMILY = [
  "op",
  "annotation",
  "python",
  "runtime",
  "kernel",
  "communication",
  "copy",
  "copy",
  "annotation",
  "sync",
  "overhead",
  "overhead",
  "other",
  "instruction",
] as const;

export type Family = (typeof FAMILY)[number];

/** Hue, saturation and lightness; names vary the lightness a little. Dark text reads on all. */
const HSL: Record<Family, [number, number, number]> = {
  op: [212, 72, 62],
  annotation: [265, 26, 62],
  python: [190, 22, 52],
  runtime: [40, 88, 50],
  kernel: [164, 62, 42],
  communication: [18, 82, 52],
  copy: [200, 75, 62],
  sync: [0, 0, 62],
  overhead: [345, 45, 60],
  other: [220, 10, 60],
  instruction: [150, 45, 55],
};

const FAMILY_WORDS: [Family, string][] = [
  ["kernel", "kernel"],
  ["communication", "communication"],
  ["copy", "copy, fill"],
  ["op", "op"],
  ["runtime", "runtime call"],
  ["annotation", "annotation"],
  ["python", "Python"],
  ["instruction", "instruction"],
];

const SHADES = 4;

export function familyOf(kind: number): Family {
  return FAMILY[kind] ?? "other";
}

/** What was seen of these kinds so far, in the legend's order. */
export function familiesOf(kinds: ReadonlySet<number>): [Family, string][] {
  const seen = new Set([...kinds].map(familyOf));
  return FAMILY_WORDS.filter(([family]) => seen.has(family));
}

/** The colour that stands for a family in legends. */
export function familyColor(family: Family): string {
  const [hue, saturation, lightness] = HSL[family];
  return `hsl(${hue} ${saturation}% ${lightness}%)`;
}

/** A shade for a name: the same name has the same one everywhere. */
export function shadeOf(name: string): number {
  let hash = 2166136261;
  for (let at = 0; at < name.length; at++) {
    hash = Math.imul(hash ^ name.charCodeAt(at), 16777619);
  }
  return (hash >>> 8) % SHADES;
}

/** Fill of a slice of this kind and shade; faint ones do not match the search. */
export function sliceColor(kind: number, shade: number, faint: boolean): string {
  const [hue, saturation, lightness] = HSL[familyOf(kind)];
  const varied = lightness - 6 + shade * 4;
  return `hsl(${hue} ${saturation}% ${varied}% / ${faint ? 0.22 : 1})`;
}
