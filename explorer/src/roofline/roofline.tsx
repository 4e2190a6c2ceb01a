// Each op against what its device can do: trnscope roofline --json.
import type { JSX } from "preact";
import type { Roofline, RooflineOp } from "../data/documents";
import { formatCount, formatNs, formatRate, formatRatio, printable, shorten } from "../data/format";
import { loaded } from "../data/loaded";
import { Figure, When } from "../shell/parts";
import { NameButton } from "../tables/jump";
import { Table, type Column } from "../tables/table";
import { boundColor, boundWord } from "./bounds";
import { RooflineChart } from "./chart";

export function RooflineView(): JSX.Element {
  return (
    <section class="view" aria-label="Roofline">
      <When loaded={loaded<Roofline>("roofline").value}>
        {(roofline) => <Content roofline={roofline} />}
      </When>
    </section>
  );
}

/** With work of unknown FLOPs the share is a lower bound. */
function utilisation(value: number | null, roofline: Roofline): string {
  const least = value !== null && roofline.uncounted_ns > 0 ? "at least " : "";
  return least + formatRatio(value);
}

function Content({ roofline }: { roofline: Roofline }): JSX.Element {
  if (roofline.abstained) {
    return <p class="note empty">Nothing can be said: {printable(roofline.reason ?? "")}.</p>;
  }
  return (
    <>
      <div class="chart-head">
        <dl class="figures">
          <Figure
            name="device"
            value={printable(roofline.hardware?.title ?? "peaks not known")}
            help={printable(roofline.no_hardware ?? "")}
          />
          <Figure
            name="MFU of the steps"
            value={utilisation(roofline.mfu_step, roofline)}
            help="FLOPs of products, convolutions and attention over what the device could do in the steps"
          />
          <Figure
            name="MFU while busy"
            value={utilisation(roofline.mfu_device, roofline)}
            help="The same over the time in which the device worked"
          />
          <Figure
            name="memory bandwidth used"
            value={utilisation(roofline.mbu_device, roofline)}
            help="Of the peak, while the device worked"
          />
        </dl>
        {roofline.no_hardware && <p class="note">{printable(roofline.no_hardware)}</p>}
      </div>
      <RooflineChart roofline={roofline} />
      <Table
        caption="Ops and what binds them"
        rows={roofline.ops}
        columns={COLUMNS}
        initial={{ column: "time_ns", descending: true }}
        text={(op) => `${op.name} ${JSON.stringify(op.input_shapes)} ${boundWord(op.bound)}`}
      />
    </>
  );
}

const COLUMNS: Column<RooflineOp>[] = [
  {
    key: "name",
    title: "op",
    value: (op) => op.name,
    show: (op) => (
      <>
        <NameButton text={op.name} length={60} />
        <bdi class="detail">{shorten(printable(JSON.stringify(op.input_shapes)), 70)}</bdi>
      </>
    ),
  },
  { key: "dtype", title: "type", value: (op) => op.dtype, show: (op) => op.dtype ?? "-" },
  number("calls", "calls", "", (op) => op.calls, formatCount),
  number("time_ns", "time", "Of all calls, added", (op) => op.time_ns, formatNs),
  number(
    "flops_per_s",
    "rate",
    "FLOPs over time",
    (op) => op.flops_per_s,
    (value) => formatRate(value, "FLOP/s"),
  ),
  number(
    "bytes_per_s",
    "bytes",
    "The least bytes that must be moved, over time",
    (op) => op.bytes_per_s,
    (value) => formatRate(value, "B/s"),
  ),
  number(
    "arithmetic_intensity",
    "FLOPs a byte",
    "Arithmetic intensity",
    (op) => op.arithmetic_intensity,
    (value) => (value === null ? "-" : value.toPrecision(3)),
  ),
  number(
    "attainable_ratio",
    "of possible",
    "The least time that the ceilings allow, over the measured time",
    (op) => op.attainable_ratio,
    formatRatio,
  ),
  {
    key: "bound",
    title: "bound by",
    help: "Which ceiling an op comes near to",
    value: (op) => boundWord(op.bound),
    show: (op) => (
      <span title={printable(op.reason ?? "")}>
        <i class="dot" aria-hidden="true" style={{ background: boundColor(op.bound) }} />
        {boundWord(op.bound)}
      </span>
    ),
  },
];

function number<V extends number | null>(
  key: string,
  title: string,
  help: string,
  value: (op: RooflineOp) => V,
  show: (value: V) => string,
): Column<RooflineOp> {
  return { key, title, help, value, show: (op) => show(value(op)), isNumber: true };
}
