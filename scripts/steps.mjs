/**
 * @typedef {{ isFine: boolean; output: string }} Outcome
 * @typedef {{ name: string; run: () => boolean | Promise<Outcome>; needs?: string }} Step What it prints is passed through, or comes with its outcome.
 */

/**
 * Runs every step in order, each under its name and with the time it took, and resolves with the names of those that did not succeed. Steps in an
 * array of their own run side by side.
 *
 * A step whose `needs` did not succeed is skipped and counts as failed; the others still run, so that one look shows everything.
 *
 * @param {readonly (Step | readonly Step[])[]} steps
 * @returns {Promise<string[]>}
 */
export async function runSteps(steps) {
  /** @type {string[]} */
  const failed = [];
  for (const step of steps) {
    if ("name" in step) await runStep(step, failed);
    else await Promise.all(step.map((one) => runStep(one, failed)));
  }
  return failed;
}

/**
 * @param {Step} step
 * @param {string[]} failed
 */
async function runStep({ name, run, needs }, failed) {
  if (needs !== undefined && failed.includes(needs)) {
    console.log(`\n== ${name}: skipped, because "${needs}" failed`);
    failed.push(name);
    return;
  }
  console.log(`\n== ${name}`);
  const begin = performance.now();
  const outcome = await run();
  const { isFine, output } = typeof outcome === "boolean" ? { isFine: outcome, output: "" } : outcome;
  const tookSec = (performance.now() - begin) / 1000;
  if (output !== "") console.log(`\n== ${name} says\n${output.trimEnd()}`);
  console.log(`== ${name}: ${isFine ? "ok" : "FAILED"} in ${tookSec.toFixed(1)} s`);
  if (!isFine) failed.push(name);
}
