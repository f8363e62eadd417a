import type { CellWrite } from "../../../src/stores/cells.js";
import type { SharedLog } from "../../../src/stores/threads/sharedLog.js";

const mostTries = 100;
/** So few that a thread which comes late needs several goes. */
const readAtOnce = 20;

type Values = readonly (string | undefined)[];

/** Carries out a change as a thread does whose patience is over at once. */
export function apply(log: SharedLog, keys: readonly string[], writes: (values: Values) => readonly CellWrite[]): void {
  attempt(log, () => log.change(keys, (values) => ({ writes: writes(values), answer: true })));
}

/** Looks at cells, and changes nothing. */
export function look(log: SharedLog, keys: readonly string[]): Values {
  return attempt(log, () => log.change(keys, (values) => ({ writes: [], answer: values })));
}

function attempt<Answer>(log: SharedLog, change: () => { readonly answer: Answer } | undefined): Answer {
  for (let tries = 0; tries < mostTries; tries++) {
    const progress = log.read(readAtOnce);
    if (progress === "pending") log.abandonPending();
    const result = progress === "level" ? change() : undefined;
    if (result !== undefined) return result.answer;
  }
  throw new Error(`Nothing came through in ${mostTries} tries.`);
}
