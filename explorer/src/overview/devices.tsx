// How busy each device was: the devices of trnscope summary --json.
import type { JSX } from "preact";
import type { DeviceSummary, Summary } from "../data/documents";
import { formatCount, formatNs, formatRatio, ratio } from "../data/format";
import { Card, Figure, Meter } from "../shell/parts";
import { familyColor } from "../timeline/colors";

export function DevicesCard({ summary }: { summary: Summary }): JSX.Element | null {
  if (summary.devices.length === 0) return null;
  return (
    <Card
      title="Devices"
      note="busy: at least one piece of device work runs; of the time from the first to the last of it"
    >
      {summary.devices.map((device) => (
        <Device key={`${device.source}${device.device}`} device={device} />
      ))}
    </Card>
  );
}

function Device({ device }: { device: DeviceSummary }): JSX.Element {
  const busy = ratio(device.busy_ns, device.busy_ns + device.idle_ns);
  return (
    <div class="device">
      <h3>
        {device.rank !== null && `rank ${device.rank} `}
        {device.device}
        {device.simulated && <span class="tag simulated">simulated</span>}
        <strong>{formatRatio(busy)} busy</strong>
      </h3>
      <Meter share={busy} color={familyColor("kernel")} />
      <dl class="figures">
        <Figure name="busy" value={formatNs(device.busy_ns)} />
        <Figure name="idle" value={formatNs(device.idle_ns)} />
        <Figure name="kernels" value={formatCount(device.num_kernels)} />
        <Figure name="compute" value={formatNs(device.compute_ns)} />
        <Figure name="communication" value={formatNs(device.communication_ns)} />
        <Figure
          name="… exposed"
          value={formatNs(device.exposed_communication_ns)}
          help="Communication while no compute runs"
        />
        <Figure name="copies" value={formatNs(device.memcpy_ns)} />
        <Figure
          name="… exposed"
          value={formatNs(device.exposed_memcpy_ns)}
          help="Copies while no compute runs"
        />
        <Figure
          name="unlinked"
          value={formatNs(device.unlinked_ns)}
          help="Work whose launch is not in the trace"
        />
      </dl>
    </div>
  );
}
