// The ops with the most own time: the head of the ops table.
import type { JSX } from "preact";
import type { Ops } from "../data/documents";
import { formatNs, formatRatio, ratio } from "../data/format";
import { Card, Meter } from "../shell/parts";
import { view } from "../state";
import { NameButton } from "../tables/jump";
import { familyColor } from "../timeline/colors";

const LISTED = 8;

export function TopOpsCard({ ops }: { ops: Ops }): JSX.Element {
  if (ops.ops.length === 0) {
    return (
      <Card title="Busiest ops">
        <p class="note">No ops were recorded: the profile holds the device's side alone.</p>
        <button type="button" onClick={() => (view.value = "kernels")}>
          All device work
        </button>
      </Card>
    );
  }
  const hasDevice = ops.unattributed_device_ns !== null;
  const own = (op: Ops["ops"][number]): number =>
    hasDevice ? (op.self_device_ns ?? 0) : op.self_cpu_ns;
  const all = ops.ops.reduce((sum, op) => sum + own(op), ops.unattributed_device_ns ?? 0);
  const top = [...ops.ops].sort((a, b) => own(b) - own(a)).slice(0, LISTED);
  const whose = hasDevice ? "device" : "CPU";
  return (
    <Card title="Busiest ops" note={`Own ${whose} time, without the calls inside`}>
      <table class="top-ops">
        <caption class="hidden">Ops with the most own {whose} time</caption>
        <tbody>
          {top.map((op) => (
            <tr key={op.name}>
              <th scope="row">
                <NameButton text={op.name} length={46} />
              </th>
              <td>
                <Meter
                  share={ratio(own(op), all)}
                  color={familyColor(hasDevice ? "kernel" : "op")}
                />
              </td>
              <td class="number">{formatNs(own(op))}</td>
              <td class="number">{formatRatio(ratio(own(op), all))}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <button type="button" onClick={() => (view.value = "ops")}>
        All ops
      </button>
    </Card>
  );
}
