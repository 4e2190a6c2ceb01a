// The first page: where the time goes, in a sentence and in pictures.
import type { JSX } from "preact";
import type { About, Breakdown, Ops, Sentence, Summary } from "../data/documents";
import { printable } from "../data/format";
import { loaded } from "../data/loaded";
import { When } from "../shell/parts";
import { explanation } from "../timeline/evidence";
import { CausesCard } from "./causes";
import { DevicesCard } from "./devices";
import { FilesCard, HealthCard } from "./health";
import { StepsCard } from "./steps";
import { TopOpsCard } from "./top";

/** Numbers stay on one line with their units. */
function withUnits(text: string): string {
  return text.replace(/(\d) (%|ns|µs|ms|s)(?!\w)/g, "$1\u00a0$2");
}

export function Overview(): JSX.Element {
  return (
    <div class="overview">
      <When loaded={loaded<About>("about").value}>
        {(about) => (
          <>
            <When loaded={loaded<Sentence>("sentence").value}>
              {({ sentence }) => <h1 class="sentence">{withUnits(printable(sentence))}</h1>}
            </When>
            <When loaded={explanation()}>{(found) => <CausesCard explanation={found} />}</When>
            <When loaded={loaded<Breakdown>("breakdown").value}>
              {(breakdown) => <StepsCard breakdown={breakdown} />}
            </When>
            <div class="cards">
              <When loaded={loaded<Summary>("summary").value}>
                {(summary) => (
                  <>
                    <DevicesCard summary={summary} />
                    <When loaded={loaded<Ops>("ops?by=name").value}>
                      {(ops) => <TopOpsCard ops={ops} />}
                    </When>
                    <HealthCard summary={summary} />
                    <FilesCard summary={summary} about={about} />
                  </>
                )}
              </When>
            </div>
          </>
        )}
      </When>
    </div>
  );
}
