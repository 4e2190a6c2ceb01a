// Memory over time by device, and which ops hold it: trnscope memory --json.
import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import type { DeviceMemory, Memory, MemoryOp } from "../data/documents";
import { formatBytes, formatCount, formatNs, printable } from "../data/format";
import { loaded } from "../data/loaded";
import { Figure, When } from "../shell/parts";
import { NameButton } from "../tables/jump";
import { Table, type Column } from "../tables/table";
import { curveOf } from "./curve";

const WIDTH = 1000;
const HEIGHT = 150;

export function MemoryView(): JSX.Element {
  return (
    <section class="view" aria-label="Memory">
      <When loaded={loaded<Memory>("memory").value}>
        {(memory) => <Devices devices={memory.devices} />}
      </When>
    </section>
  );
}

function Devices({ devices }: { devices: DeviceMemory[] }): JSX.Element {
  const chosen = useSignal(largest(devices));
  if (devices.length === 0) {
    return (
      <p class="note empty">
        No allocations were recorded. Record them with trnscope run --memory, or
        torch.profiler.profile(profile_memory=True).
      </p>
    );
  }
  const device = devices[chosen.value];
  return (
    <>
      <div class="chart-head">
        <label class="group-by">
          of{" "}
          <select
            aria-label="Device"
            value={chosen.value}
            onChange={(event) => (chosen.value = Number(event.currentTarget.value))}
          >
            {devices.map((each, at) => (
              <option key={at} value={at}>
                {titleOf(each)}
              </option>
            ))}
          </select>
        </label>
        <Figures device={device} />
      </div>
      <Level device={device} />
      <Table
        key={chosen.value}
        caption={`Memory of ${titleOf(device)} by op`}
        rows={device.ops}
        columns={COLUMNS}
        initial={{ column: "held_at_peak_bytes", descending: true }}
        text={(op) => op.name ?? ""}
      />
    </>
  );
}

function largest(devices: DeviceMemory[]): number {
  return devices.reduce(
    (best, each, at) => (each.peak_bytes > devices[best].peak_bytes ? at : best),
    0,
  );
}

function titleOf(device: DeviceMemory): string {
  return `${device.rank === null ? "" : `rank ${device.rank} `}${printable(device.device)}`;
}

function Figures({ device }: { device: DeviceMemory }): JSX.Element {
  const least = device.is_start_exact ? "" : "at least ";
  return (
    <dl class="figures">
      <Figure name="at the start" value={least + formatBytes(device.start_bytes)} />
      <Figure name="peak" value={least + formatBytes(device.peak_bytes)} />
      <Figure name="peak reached in" value={printable(device.peak_op ?? "no op")} />
      <Figure name="at the end" value={least + formatBytes(device.end_bytes)} />
      <Figure
        name="not freed"
        value={`${formatBytes(device.never_freed.size_bytes)} in ${formatCount(device.never_freed.count)}`}
        help="Allocated while recording and not freed by its end: kept on purpose, or leaked"
      />
      {device.reserved && (
        <Figure
          name="reserved, at most"
          value={formatBytes(device.reserved.peak_bytes)}
          help="What the caching allocator had taken from the device"
        />
      )}
    </dl>
  );
}

function Level({ device }: { device: DeviceMemory }): JSX.Element | null {
  const curve = curveOf(device.level, WIDTH, HEIGHT);
  if (curve === null) return null;
  const span = device.level[device.level.length - 1][0] - device.level[0][0];
  const what = `Memory of ${titleOf(device)} over ${formatNs(span)}, up to ${formatBytes(device.peak_bytes)}`;
  return (
    <figure class="picture">
      <svg
        viewBox={`0 -4 ${WIDTH} ${HEIGHT + 5}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={what}
      >
        <path class="area" d={curve.area} />
        <path class="line" d={curve.line} vector-effect="non-scaling-stroke" />
      </svg>
      <figcaption class="note">
        <span>{formatBytes(device.peak_bytes)} at the top, 0 at the bottom</span>
        <span>{formatNs(span)}</span>
      </figcaption>
    </figure>
  );
}

const COLUMNS: Column<MemoryOp>[] = [
  {
    key: "name",
    title: "op",
    value: (op) => op.name ?? "outside of every op",
    show: (op) =>
      op.name === null ? "outside of every op" : <NameButton text={op.name} length={70} />,
  },
  size("held_at_peak_bytes", "held at peak", "Of what it allocated, still held at the peak"),
  count("num_allocations", "allocations"),
  size("allocated_bytes", "allocated", "Added over all allocations"),
  count("num_frees", "frees"),
  size("freed_bytes", "freed", "Added over all frees"),
  size("net_bytes", "net", "Allocated less freed"),
];

type SizeKey = "held_at_peak_bytes" | "allocated_bytes" | "freed_bytes" | "net_bytes";

function size(key: SizeKey, title: string, help: string): Column<MemoryOp> {
  return {
    key,
    title,
    help,
    value: (op) => op[key],
    show: (op) => formatBytes(op[key]),
    isNumber: true,
  };
}

function count(key: "num_allocations" | "num_frees", title: string): Column<MemoryOp> {
  return {
    key,
    title,
    value: (op) => op[key],
    show: (op) => formatCount(op[key]),
    isNumber: true,
  };
}
