// A logarithmic axis: values to places, and the powers of ten to label.

export interface LogScale {
  place: (value: number) => number;
  ticks: number[];
  low: number;
  high: number;
}

/** From the power of ten at or below the least value to the one at or above the greatest. */
export function logScale(values: readonly number[], from: number, to: number): LogScale | null {
  const usable = values.filter((value) => value > 0 && Number.isFinite(value));
  if (usable.length === 0) return null;
  const low = Math.floor(Math.log10(Math.min(...usable)));
  const high = Math.max(Math.ceil(Math.log10(Math.max(...usable))), low + 1);
  const ticks = Array.from({ length: high - low + 1 }, (_, at) => 10 ** (low + at));
  const place = (value: number): number =>
    from + ((Math.log10(value) - low) / (high - low)) * (to - from);
  return { place, ticks, low: 10 ** low, high: 10 ** high };
}
