// How far the figures can be trusted, and what was read.
import type { JSX } from "preact";
import type { About, Summary } from "../data/documents";
import { formatCount, formatNs, plural, printable } from "../data/format";
import { Card, Name } from "../shell/parts";

export function HealthCard({ summary }: { summary: Summary }): JSX.Element {
  const { health } = summary;
  return (
    <Card title="Health">
      <p class={health.complete ? "good" : "bad"}>
        <strong>{health.complete ? "✓ Complete" : "✗ Incomplete"}</strong>
        {` · ${plural(health.num_events_read, "event")} read`}
        {health.num_events_repaired > 0 && `, ${formatCount(health.num_events_repaired)} repaired`}
        {health.num_events_unreadable > 0 &&
          `, ${formatCount(health.num_events_unreadable)} unreadable`}
      </p>
      {health.warnings.length === 0 && (
        <p class="note">What the files hold was read whole and is consistent.</p>
      )}
      <ul class="warnings">
        {health.warnings.map((warning, at) => (
          <li key={at}>
            <code>{printable(warning.code)}</code>
            {warning.count > 1 && ` (${formatCount(warning.count)})`} {printable(warning.message)}
            {warning.consequence !== null && <p class="note">→ {printable(warning.consequence)}</p>}
          </li>
        ))}
      </ul>
    </Card>
  );
}

export function FilesCard({ summary, about }: { summary: Summary; about: About }): JSX.Element {
  return (
    <Card title="Profile">
      <dl class="figures">
        <div>
          <dt>all work spans</dt>
          <dd>{formatNs(summary.span_ns)}</dd>
        </div>
        <div>
          <dt>events</dt>
          <dd>{formatCount(about.num_events)}</dd>
        </div>
        <div>
          <dt>device work</dt>
          <dd>
            {summary.devices.length ? plural(summary.devices.length, "device") : "not recorded"}
          </dd>
        </div>
      </dl>
      <ul class="files">
        {summary.sources.map((source) => (
          <li key={source.path}>
            <Name text={source.path} length={64} />
            <span class="note">
              {source.format}
              {source.rank !== null && `, rank ${source.rank}`}
            </span>
          </li>
        ))}
      </ul>
      <p class="note">Read by trnscope {about.version}</p>
    </Card>
  );
}
