// Statistics of the selected range: device use, and what ran in it.
import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import type { RangeReport } from "../data/documents";
import { formatCount, formatNs, formatRatio, plural, ratio } from "../data/format";
import { Meter, Name, Problem } from "../shell/parts";
import { range } from "../state";
import { familyColor } from "./colors";
import { rangeFailure, rangeReport } from "./selection";

const LISTED = 200;
const DEVICE_WORK = ["kernel", "communication", "memcpy", "memset"];

export function RangePanel(): JSX.Element {
  const failure = rangeFailure.value;
  const report = rangeReport.value;
  return (
    <section class="panel range" aria-label="Selected range">
      {failure && <Problem error={failure} />}
      {report && <Report report={report} />}
      {!report && !failure && (
        <p class="loading" role="status">
          Counting …
        </p>
      )}
    </section>
  );
}

function Report({ report }: { report: RangeReport }): JSX.Element {
  const onlyDevice = useSignal(report.devices.length > 0);
  const rows = report.rows.filter((row) => !onlyDevice.value || DEVICE_WORK.includes(row.kind));
  return (
    <>
      <header>
        <h2>
          Range of {formatNs(report.duration_ns)}
          <span class="note">
            {" "}
            from {formatNs(report.start_ns)}; {plural(report.num_slices, "slice")}
          </span>
        </h2>
        {report.devices.length > 0 && (
          <label class="check">
            <input
              type="checkbox"
              checked={onlyDevice}
              onChange={(event) => (onlyDevice.value = event.currentTarget.checked)}
            />
            device work only
          </label>
        )}
        <button
          type="button"
          class="icon"
          aria-label="Clear the range"
          onClick={() => (range.value = null)}
        >
          ×
        </button>
      </header>
      <ul class="range-devices">
        {report.devices.map((device) => (
          <li key={`${device.source}${device.device}`}>
            <strong>
              {device.rank === null ? device.device : `rank ${device.rank} ${device.device}`}
            </strong>
            <Meter
              share={ratio(device.busy_ns, report.duration_ns)}
              color={familyColor("kernel")}
            />
            <span>
              busy {formatNs(device.busy_ns)} (
              {formatRatio(ratio(device.busy_ns, report.duration_ns))}), idle{" "}
              {formatNs(device.idle_ns)}, communication {formatNs(device.communication_ns)}, copies{" "}
              {formatNs(device.memcpy_ns)}
            </span>
          </li>
        ))}
      </ul>
      <div class="scroll" tabIndex={0} role="region" aria-label="What ran in the range">
        <table>
          <caption class="hidden">What ran in the range</caption>
          <thead>
            <tr>
              <th scope="col">name</th>
              <th scope="col">kind</th>
              <th scope="col" class="number">
                count
              </th>
              <th
                scope="col"
                class="number"
                title="Durations inside the range, added; nested calls count each"
              >
                sum in range
              </th>
            </tr>
          </thead>
          <tbody>
            {rows.slice(0, LISTED).map((row) => (
              <tr key={row.kind + row.name}>
                <th scope="row">
                  <Name text={row.name} length={90} />
                </th>
                <td>{row.kind}</td>
                <td class="number">{formatCount(row.count)}</td>
                <td class="number">{formatNs(row.sum_ns)}</td>
              </tr>
            ))}
          </tbody>
        </table>
        {rows.length === 0 && <p class="note">Nothing of this kind ran in the range.</p>}
        {(rows.length > LISTED || report.num_rows > report.rows.length) && (
          <p class="note">
            The longest {formatCount(Math.min(rows.length, LISTED))} names are listed.
          </p>
        )}
      </div>
    </>
  );
}
