// What the doctor found: the answer of trnscope explain --json.
import type { JSX } from "preact";
import type { Explanation, Finding } from "../data/documents";
import { isReport } from "../data/embedded";
import { formatNs, formatRatio, plural, printable } from "../data/format";
import { Card, Name } from "../shell/parts";
import { showFinding } from "../timeline/evidence";

const SOURCES = 3;

export function CausesCard({ explanation }: { explanation: Explanation }): JSX.Element {
  const { findings, withheld } = explanation;
  return (
    <Card title="Causes" class="causes">
      <p class="verdict">{printable(explanation.verdict)}</p>
      {explanation.reason !== null && <p class="note">{printable(explanation.reason)}</p>}
      <ol>
        {findings.map((finding, at) => (
          <li key={finding.code}>
            <Cause finding={finding} at={at} />
          </li>
        ))}
      </ol>
      {withheld.length > 0 && (
        <details>
          <summary>
            {plural(withheld.length, "rule")} not asked: what they need was not recorded
          </summary>
          <ul class="note">
            {withheld.map((rule) => (
              <li key={rule.code}>
                {rule.rule}: {printable(rule.reason)}
              </li>
            ))}
          </ul>
        </details>
      )}
    </Card>
  );
}

function Cause({ finding, at }: { finding: Finding; at: number }): JSX.Element {
  return (
    <>
      <h3>
        <span>{printable(finding.title)}</span>
        <span class="kind">confidence {finding.confidence}</span>
        {finding.evidence.length > 0 && !isReport && (
          <button type="button" onClick={() => showFinding(at)}>
            Show on the timeline
          </button>
        )}
      </h3>
      <Saving finding={finding} />
      {finding.try.length > 0 && (
        <ul class="tries" aria-label="What to try">
          {finding.try.map((edit) => (
            <li key={edit}>{printable(edit)}</li>
          ))}
        </ul>
      )}
      {finding.source !== null && (
        <p class="note">
          {finding.source.slice(0, SOURCES).map((place) => (
            <Name key={place.file + place.line} text={`${place.file}:${place.line} `} length={90} />
          ))}
        </p>
      )}
    </>
  );
}

function Saving({ finding }: { finding: Finding }): JSX.Element {
  const times = finding.recoverable_ns_per_step;
  if (times === null)
    return <p class="note">It costs no step any time; it limits what can be said.</p>;
  const [low, likely, high] = times;
  return (
    <p>
      would save about <strong>{formatNs(likely)}</strong> of each step
      {finding.share_of_step !== null && `, ${formatRatio(finding.share_of_step)} of it`}{" "}
      <span class="note">
        (at least {formatNs(low)}, at most {formatNs(high)})
      </span>
    </p>
  );
}
