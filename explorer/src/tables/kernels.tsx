// Device work: the rows of trnscope kernels --json.
import { signal } from "@preact/signals";
import type { JSX } from "preact";
import type { Kernel, Kernels } from "../data/documents";
import { isReport } from "../data/embedded";
import { formatCount, formatNs, formatRatio } from "../data/format";
import { loaded } from "../data/loaded";
import { Meter, Name, When } from "../shell/parts";
import { familyColor, type Family } from "../timeline/colors";
import { NameButton } from "./jump";
import { GroupBy, Table, type Column } from "./table";

type By = "name" | "device" | "stream";

const CHOICES: [By, string][] = [
  ["name", "name"],
  ["device", "device"],
  ["stream", "stream"],
];

const FAMILY: Record<string, Family> = {
  kernel: "kernel",
  communication: "communication",
  memcpy: "copy",
  memset: "copy",
};

const by = signal<By>("name");

export function KernelsView(): JSX.Element {
  const tools = isReport ? (
    <></>
  ) : (
    <GroupBy value={by.value} choices={CHOICES} onChange={(next) => (by.value = next)} />
  );
  const found = loaded<Kernels>(`kernels?by=${by.value}`).value;
  return (
    <section class="view" aria-label="Kernels">
      {found.state !== "ready" && <div class="toolbar">{tools}</div>}
      <When loaded={found}>{(kernels) => <KernelsTable kernels={kernels} tools={tools} />}</When>
    </section>
  );
}

function KernelsTable({ kernels, tools }: { kernels: Kernels; tools: JSX.Element }): JSX.Element {
  if (kernels.kernels.length === 0) {
    return (
      <p class="empty">
        No device work was recorded. Record with the device's activity switched on, or look at the
        ops: they hold the host's time.
      </p>
    );
  }
  return (
    <>
      <Table
        key={by.value}
        caption={`Device work by ${by.value}`}
        rows={kernels.kernels}
        columns={COLUMNS}
        initial={{ column: "sum_ns", descending: true }}
        text={(row) => `${row.name} ${row.kind} ${row.devices.join(" ")}`}
        tools={tools}
      />
      <p class="note foot">
        share: of the {formatNs(kernels.sum_ns)} of all device work, durations added; the devices
        were busy for {formatNs(kernels.busy_ns)}, each instant counted once.
      </p>
    </>
  );
}

const COLUMNS: Column<Kernel>[] = [
  {
    key: "name",
    title: "name",
    value: (row) => row.name,
    show: (row) =>
      by.value === "name" ? <NameButton text={row.name} length={84} /> : <Name text={row.name} />,
  },
  { key: "kind", title: "kind", value: (row) => row.kind, show: (row) => row.kind },
  {
    key: "count",
    title: "count",
    value: (row) => row.count,
    show: (row) => formatCount(row.count),
    isNumber: true,
  },
  time("sum_ns", "sum", "Durations, added"),
  {
    key: "share_of_sum_ratio",
    title: "share",
    help: "Of the durations of all device work, added",
    value: (row) => row.share_of_sum_ratio,
    show: (row) => (
      <>
        <Meter share={row.share_of_sum_ratio} color={familyColor(FAMILY[row.kind] ?? "other")} />
        <span class="share">{formatRatio(row.share_of_sum_ratio)}</span>
      </>
    ),
    isNumber: true,
  },
  time("mean_ns", "mean"),
  time("min_ns", "min"),
  time("p50_ns", "p50", "Half of them are not longer (nearest rank)"),
  time("p95_ns", "p95", "95 % of them are not longer (nearest rank)"),
  time("max_ns", "max"),
];

type TimeKey = "sum_ns" | "mean_ns" | "min_ns" | "p50_ns" | "p95_ns" | "max_ns";

function time(key: TimeKey, title: string, help?: string): Column<Kernel> {
  return {
    key,
    title,
    help,
    value: (row) => row[key],
    show: (row) => formatNs(row[key]),
    isNumber: true,
  };
}
