/**
 * @typedef {{ isFine: boolean; output: string }} Outcome
 * @typedef {{ name: string; run: () => boolean | Promise<boolean | Outcome>; needs?: readonly string[]; after?: readonly string[] }} Step What it prints is passed through, or comes with its outcome.
 */

/**
 * Runs every step as soon as those it `needs`, and those it is to come `after`, have ended: side by side where nothing is said. Prints each under its
 * name, with the time it took, and resolves with the names of those that did not succeed.
 *
 * A step of whose `needs` one did not succeed is skipped and counts as failed; the others still run, so that one look shows everything. Names in `needs` and
 * `after` are those of earlier steps.
 *
 * @param {readonly Step[]} steps
 * @returns {Promise<string[]>}
 */
export async function runSteps(steps) {
  /** @type {Map<string, Promise<boolean>>} */
  const ends = new Map();
  for (const step of steps) ends.set(step.name, inTurn(step, ends));
  const outcomes = await Promise.all(ends.values());
  return steps.filter((_, index) => outcomes[index] === false).map(({ name }) => name);
}

/**
 * @param {Step} step
 * @param {ReadonlyMap<string, Promise<boolean>>} ends
 */
async function inTurn(step, ends) {
  const { name, needs = [], after = [] } = step;
  const endOf = (/** @type {string} */ other) => {
    const end = ends.get(other);
    if (end === undefined) throw new Error(`The step "${name}" waits for "${other}", which is not before it.`);
    return end;
  };
  for (const other of after) await endOf(other);
  const missing = [];
  for (const other of needs) if (!(await endOf(other))) missing.push(other);
  if (missing.length === 0) return runStep(step);
  console.log(`\n== ${name}: skipped, because "${missing.join('", "')}" failed`);
  return false;
}

/** @param {Step} step */
async function runStep({ name, run }) {
  console.log(`\n== ${name}`);
  const begin = performance.now();
  const outcome = await run();
  const { isFine, output } = typeof outcome === "boolean" ? { isFine: outcome, output: "" } : outcome;
  const tookSec = (performance.now() - begin) / 1000;
  if (output !== "") console.log(`\n== ${name} says\n${output.trimEnd()}`);
  console.log(`== ${name}: ${isFine ? "ok" : "FAILED"} in ${tookSec.toFixed(1)} s`);
  return isFine;
}
