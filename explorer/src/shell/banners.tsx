// What must be said above every figure: parts are missing, times are simulated.
import type { JSX } from "preact";
import type { About } from "../data/documents";
import { printable } from "../data/format";

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
    </>
  );
}
