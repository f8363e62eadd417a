import type { FeedTotals, HostState } from "../../../src/serve/feed/row.js";
import { rateText } from "../../../src/view/amounts.js";
import { countText } from "../../../src/words.js";
import { STATES } from "../state/host.js";
import { STATE_WORDS, StateMark } from "./stateMark.js";

/** The large numbers. */
export function Totals({ totals }: { readonly totals: FeedTotals }) {
  return (
    <dl class="totals">
      <Sum name="starts now" value={rateText(totals.perSecond)} isMain />
      <Sum name="waiting" value={countText(totals.waiting)} />
      <Sum name="in flight" value={countText(totals.inFlight)} />
      <Sum name="429s" value={countText(totals.throttled)} isBad={totals.throttled > 0} />
      <Sum name="starts in all" value={countText(totals.starts)} />
    </dl>
  );
}

interface SumProps {
  readonly name: string;
  readonly value: string;
  readonly isMain?: boolean;
  readonly isBad?: boolean;
}

function Sum({ name, value, isMain = false, isBad = false }: SumProps) {
  return (
    <div class={`${isMain ? "main" : ""} ${isBad ? "bad" : ""}`}>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </div>
  );
}

/** What the filter shows and tells. */
export interface StateFilterProps {
  readonly hosts: FeedTotals["hosts"];
  readonly chosen: HostState | undefined;
  readonly onChoose: (state: HostState | undefined) => void;
}

/** Hosts by state: a bar in proportion, and a button for each state that shows only its hosts. */
export function StateFilter({ hosts, chosen, onChoose }: StateFilterProps) {
  const all = STATES.reduce((sum, state) => sum + hosts[state], 0);
  return (
    <fieldset class="filter">
      <legend class="unseen">Show hosts by state</legend>
      <div class="share" aria-hidden="true">
        {STATES.map((state) =>
          hosts[state] === 0 ? null : <span key={state} class={`is-${state}`} style={{ flexGrow: hosts[state] }} />,
        )}
      </div>
      <div class="chips">
        <button type="button" aria-pressed={chosen === undefined} onClick={() => onChoose(undefined)}>
          All <b>{countText(all)}</b>
        </button>
        {STATES.map((state) => (
          <button
            key={state}
            type="button"
            class={hosts[state] === 0 ? "none" : ""}
            aria-pressed={chosen === state}
            onClick={() => onChoose(chosen === state ? undefined : state)}
          >
            <StateMark state={state} />
            {STATE_WORDS[state]} <b>{countText(hosts[state])}</b>
          </button>
        ))}
      </div>
    </fieldset>
  );
}
