// Time by framework op: the rows of trnscope ops --json.
import { signal } from "@preact/signals";
import type { JSX } from "preact";
import type { Op, Ops } from "../data/documents";
import { isReport } from "../data/embedded";
import { formatCount, formatNs, formatRatio, printable, ratio, shorten } from "../data/format";
import { loaded } from "../data/loaded";
import { Meter, When } from "../shell/parts";
import { familyColor } from "../timeline/colors";
import { NameButton } from "./jump";
import { GroupBy, Table, type Column } from "./table";

type By = "name" | "shape" | "stack" | "module";

const CHOICES: [By, string][] = [
  ["name", "name"],
  ["shape", "name and shapes"],
  ["stack", "name and stack"],
  ["module", "name and module"],
];

const by = signal<By>("name");

export function OpsView(): JSX.Element {
  const tools = isReport ? (
    <></>
  ) : (
    <GroupBy value={by.value} choices={CHOICES} onChange={(next) => (by.value = next)} />
  );
  const found = loaded<Ops>(`ops?by=${by.value}`).value;
  return (
    <section class="view" aria-label="Ops">
      {found.state !== "ready" && <div class="toolbar">{tools}</div>}
      <When loaded={found}>{(ops) => <OpsTable ops={ops} tools={tools} />}</When>
    </section>
  );
}

function OpsTable({ ops, tools }: { ops: Ops; tools: JSX.Element }): JSX.Element {
  const hasDevice = ops.unattributed_device_ns !== null;
  const device = hasDevice ? deviceColumns(ops) : [];
  return (
    <>
      <Table
        key={by.value}
        caption={`Ops by ${by.value}`}
        rows={ops.ops}
        columns={[...hostColumns(ops), ...device]}
        initial={{ column: hasDevice ? "self_device_ns" : "self_cpu_ns", descending: true }}
        text={(op) => `${op.name} ${detailOf(op)}`}
        tools={tools}
      />
      <p class="note foot">
        self: without the calls inside; it adds up, total does not.{" "}
        {ops.unattributed_device_ns
          ? `${formatNs(ops.unattributed_device_ns)} of device work is charged to no op: its launch or op is not in the trace.`
          : hasDevice
            ? "All device work is charged to an op."
            : "No device work was recorded, so there are no device columns."}
      </p>
    </>
  );
}

/** What tells the rows of one name apart. */
function detailOf(op: Op): string {
  if (op.input_shapes !== undefined) return JSON.stringify(op.input_shapes);
  if (op.stack !== undefined) return op.stack.join(" ← ");
  return op.module ?? "";
}

function hostColumns(ops: Ops): Column<Op>[] {
  const all = ops.ops.reduce((sum, op) => sum + op.self_cpu_ns, 0);
  return [
    {
      key: "name",
      title: "op",
      value: (op) => op.name,
      show: (op) => (
        <>
          <NameButton text={op.name} length={70} />
          {detailOf(op) && (
            <bdi class="detail" title={printable(detailOf(op))}>
              {shorten(printable(detailOf(op)), 90)}
            </bdi>
          )}
        </>
      ),
    },
    count("calls", "calls", (op) => op.calls),
    time(
      "self_cpu_ns",
      "self CPU",
      "Own CPU time, without the calls inside",
      (op) => op.self_cpu_ns,
    ),
    share("self_cpu_share", "CPU %", "Of the self CPU time of all rows", "op", (op) =>
      ratio(op.self_cpu_ns, all),
    ),
    time("cpu_total_ns", "CPU total", "CPU time with the calls inside", (op) => op.cpu_total_ns),
  ];
}

function deviceColumns(ops: Ops): Column<Op>[] {
  const charged = ops.ops.reduce((sum, op) => sum + (op.self_device_ns ?? 0), 0);
  const all = charged + (ops.unattributed_device_ns ?? 0);
  return [
    time(
      "self_device_ns",
      "self device",
      "Device work that it launched itself",
      (op) => op.self_device_ns,
    ),
    share(
      "self_device_share",
      "device %",
      "Of the durations of all device work, added",
      "kernel",
      (op) => (op.self_device_ns === null ? null : ratio(op.self_device_ns, all)),
    ),
    time(
      "device_total_ns",
      "device total",
      "Device work of it and the calls inside",
      (op) => op.device_total_ns,
    ),
  ];
}

function count(key: string, title: string, value: (op: Op) => number): Column<Op> {
  return { key, title, value, show: (op) => formatCount(value(op)), isNumber: true };
}

function time(
  key: string,
  title: string,
  help: string,
  value: (op: Op) => number | null,
): Column<Op> {
  return { key, title, help, value, show: (op) => formatNs(value(op)), isNumber: true };
}

function share(
  key: string,
  title: string,
  help: string,
  family: "op" | "kernel",
  value: (op: Op) => number | null,
): Column<Op> {
  const show = (op: Op): JSX.Element => (
    <>
      <Meter share={value(op)} color={familyColor(family)} />
      <span class="share">{formatRatio(value(op))}</span>
    </>
  );
  return { key, title, help, value, show, isNumber: true };
}
