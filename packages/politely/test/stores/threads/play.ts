import type { CellWrite, ChangeCells } from "../../../src/stores/cells.js";
import { COPYING, SharedLog } from "../../../src/stores/sharedLog.js";

const mostTries = 1_000;

type Values = readonly (string | undefined)[];

/** A thread that has the least memory that there is. */
export function newLog(memory: SharedArrayBuffer, nowUs: () => number = () => 1): SharedLog {
  return new SharedLog(memory, nowUs);
}

/** Carries out a change as a thread does whose patience is over at once. */
export function apply(log: SharedLog, keys: readonly string[], writes: (values: Values) => readonly CellWrite[]): void {
  attempt(log, keys, (values) => ({ writes: writes(values), answer: undefined }));
}

/** Looks at cells, and changes nothing. */
export function look(log: SharedLog, keys: readonly string[]): Values {
  return attempt(log, keys, (values) => ({ writes: [], answer: values }));
}

/** Whether a thread copies now, so that others would wait. */
export function isCopying(log: SharedLog): boolean {
  return (log.look() & COPYING) !== 0n;
}

function attempt<Answer>(log: SharedLog, keys: readonly string[], change: ChangeCells<Answer>): Answer {
  let answers: readonly Answer[] = [];
  let failures: readonly unknown[] = [];
  const resolve = (answer: Answer): unknown => (answers = [answer]);
  const reject = (error: unknown): unknown => (failures = [error]);
  for (let tries = 0; tries < mostTries; tries++) {
    if (!log.take(log.look()) || !log.carryOut(keys, change, resolve, reject)) continue;
    if (failures.length > 0) throw failures[0];
    return answers[0];
  }
  throw new Error(`Nothing came through in ${mostTries} tries.`);
}
