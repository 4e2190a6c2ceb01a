// What must be said above every figure: parts are missing, times are simulated.
import type { JSX } from "preact";
import type { About } from "../data/documents";
import { isReport } from "../data/embedded";
import { formatCount, printable } from "../data/format";

export function Banners({ about }: { about: About }): JSX.Element {
  return (
    <>
      {about.simulated_by !== null && (
        <p class="banner simulated" role="note">
          <strong>Simulated.</strong> Device times come from {printable(about.simulated_by)}, not
          from a measurement.
        </p>
      )}
      {about.incomplete !== null && (
        <p class="banner incomplete" role="note">
          <strong>Incomplete.</strong> {printable(about.incomplete)}.
        </p>
      )}
      {isReport && <ReportBanner about={about} />}
    </>
  );
}

function ReportBanner({ about }: { about: About }): JSX.Element {
  const left = Object.entries(about.left_out ?? {});
  const missing = left.map(([name, rows]) => `${formatCount(rows)} rows of ${name}`).join(", ");
  return (
    <p class="banner report" role="note">
      <strong>Report.</strong> One file, no server: the timeline and SQL need trnscope open.
      {missing && ` Left out for its size: ${missing}.`}
      {about.redacted && " Folders and names of the machine were taken out."}
    </p>
  );
}
