import type { Parameters } from "fast-check";

const given = process.env.FC_SEED;
const seed = given === undefined ? Math.trunc(Math.random() * 2 ** 31) : Number(given);
const times = Number(process.env.FC_TIMES ?? 1);
let isPrinted = false;

/**
 * Settings for `fc.assert`: this run's seed, printed once per worker. The same run again: `FC_SEED=<seed>`.
 *
 * `FC_TIMES=20` makes twenty times as many runs, for a long hunt. It is rounded up: fast-check never ends with a part of a run.
 */
export function seeded<Values>(numRuns: number): Parameters<Values> {
  if (!isPrinted) {
    isPrinted = true;
    console.info(`properties with FC_SEED=${seed}`);
  }
  return { seed, numRuns: Math.ceil(numRuns * times) };
}
