// Ops under the ceilings of their device: FLOP/s over FLOPs a byte, both logarithmic.
import type { JSX } from "preact";
import type { Roofline, RooflineOp } from "../data/documents";
import { formatNs, formatRate, printable } from "../data/format";
import { boundColor } from "./bounds";
import { logScale, type LogScale } from "./scale";

const WIDTH = 1400;
const HEIGHT = 320;
const LEFT = 92;
const BOTTOM = 34;
const SHOWN = 400;

interface Placed {
  op: RooflineOp;
  intensity: number;
  rate: number;
}

export function RooflineChart({ roofline }: { roofline: Roofline }): JSX.Element | null {
  const placed = roofline.ops.flatMap(placeOf).slice(0, SHOWN);
  const peaks = peaksOf(roofline);
  const bandwidth = roofline.hardware?.peak_bytes_per_s?.value ?? null;
  const ridges = bandwidth === null ? [] : peaks.map(([, peak]) => peak / bandwidth);
  const x = logScale([...placed.map((one) => one.intensity), ...ridges], LEFT, WIDTH - 12);
  const y = logScale(
    [...placed.map((one) => one.rate), ...peaks.map(([, peak]) => peak)],
    HEIGHT - BOTTOM,
    12,
  );
  if (placed.length === 0 || x === null || y === null) return null;
  const most = Math.max(...placed.map((one) => one.op.time_ns), 1);
  return (
    <figure class="picture roofline">
      <svg
        viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
        role="img"
        aria-label={`${placed.length} ops by arithmetic intensity and rate; the table holds their figures`}
      >
        <Axes x={x} y={y} />
        {bandwidth !== null && <Slope x={x} y={y} bandwidth={bandwidth} peaks={peaks} />}
        {peaks.map(([dtype, peak]) => (
          <Ceiling key={dtype} x={x} y={y} dtype={dtype} peak={peak} bandwidth={bandwidth} />
        ))}
        {placed.map(({ op, intensity, rate }, at) => (
          <circle
            key={at}
            cx={x.place(intensity)}
            cy={y.place(rate)}
            r={3 + 11 * Math.sqrt(op.time_ns / most)}
            fill={boundColor(op.bound)}
          >
            <title>{`${printable(op.name)}: ${formatNs(op.time_ns)}, ${formatRate(rate, "FLOP/s")}, ${intensity.toPrecision(3)} FLOPs a byte`}</title>
          </circle>
        ))}
      </svg>
      <figcaption class="note">
        <span>
          FLOP/s over FLOPs a byte; a dot is one op and shape, as large as its time. Lines: what{" "}
          {roofline.hardware === null
            ? "the device can do is not known"
            : `${printable(roofline.hardware.title)} can do`}
          .
        </span>
      </figcaption>
    </figure>
  );
}

function placeOf(op: RooflineOp): Placed[] {
  const { arithmetic_intensity: intensity, flops_per_s: rate } = op;
  return intensity && rate ? [{ op, intensity, rate }] : [];
}

/** The ceilings of the types that the ops use. */
function peaksOf(roofline: Roofline): [string, number][] {
  const { hardware } = roofline;
  if (hardware === null) return [];
  const any = hardware.peak_flops_per_s_of_any_type;
  if (any) return [["every type", any.value]];
  const used = new Set(roofline.ops.filter((op) => placeOf(op).length).map((op) => op.dtype));
  return Object.entries(hardware.peak_flops_per_s)
    .filter(([dtype]) => used.has(dtype))
    .map(([dtype, peak]) => [dtype, peak.value]);
}

function Axes({ x, y }: { x: LogScale; y: LogScale }): JSX.Element {
  return (
    <g class="axes">
      {x.ticks.map((tick) => (
        <g key={tick}>
          <line x1={x.place(tick)} x2={x.place(tick)} y1={12} y2={HEIGHT - BOTTOM} />
          <text x={x.place(tick)} y={HEIGHT - 14} text-anchor="middle">
            {Number(tick.toPrecision(1)).toLocaleString("en-US", { maximumFractionDigits: 6 })}
          </text>
        </g>
      ))}
      {y.ticks.map((tick) => (
        <g key={tick}>
          <line x1={LEFT} x2={WIDTH - 12} y1={y.place(tick)} y2={y.place(tick)} />
          <text x={LEFT - 8} y={y.place(tick) + 4} text-anchor="end">
            {formatRate(tick, "FLOP/s")}
          </text>
        </g>
      ))}
    </g>
  );
}

function Slope(props: {
  x: LogScale;
  y: LogScale;
  bandwidth: number;
  peaks: [string, number][];
}): JSX.Element {
  const { x, y, bandwidth, peaks } = props;
  const top = peaks.length ? Math.max(...peaks.map(([, peak]) => peak)) : y.high;
  const begin = Math.max(x.low, y.low / bandwidth);
  const end = Math.min(x.high, Math.min(top, y.high) / bandwidth);
  if (end <= begin) return <g />;
  return (
    <line
      class="roof"
      x1={x.place(begin)}
      y1={y.place(begin * bandwidth)}
      x2={x.place(end)}
      y2={y.place(end * bandwidth)}
    >
      <title>{formatRate(bandwidth, "B/s")}</title>
    </line>
  );
}

function Ceiling(props: {
  x: LogScale;
  y: LogScale;
  dtype: string;
  peak: number;
  bandwidth: number | null;
}): JSX.Element {
  const { x, y, dtype, peak, bandwidth } = props;
  const ridge = bandwidth === null ? x.low : Math.max(peak / bandwidth, x.low);
  return (
    <g>
      <line
        class="roof"
        x1={x.place(Math.min(ridge, x.high))}
        x2={x.place(x.high)}
        y1={y.place(peak)}
        y2={y.place(peak)}
      />
      <text class="roof-name" x={WIDTH - 16} y={y.place(peak) - 5} text-anchor="end">
        {printable(dtype)} {formatRate(peak, "FLOP/s")}
      </text>
    </g>
  );
}
