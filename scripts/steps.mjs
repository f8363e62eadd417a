/** @typedef {{ name: string; run: () => boolean; needs?: string }} Step */

/**
 * Runs every step in order, each under its name and with the time it took, and returns the names of those that did not succeed.
 *
 * A step whose `needs` did not succeed is skipped and counts as failed; the others still run, so that one look shows everything.
 *
 * @param {readonly Step[]} steps
 * @returns {string[]}
 */
export function runSteps(steps) {
  /** @type {string[]} */
  const failed = [];
  for (const { name, run, needs } of steps) {
    if (needs !== undefined && failed.includes(needs)) {
      console.log(`\n== ${name}: skipped, because "${needs}" failed`);
      failed.push(name);
      continue;
    }
    console.log(`\n== ${name}`);
    const begin = performance.now();
    const isFine = run();
    console.log(`== ${name}: ${isFine ? "ok" : "FAILED"} in ${((performance.now() - begin) / 1000).toFixed(1)} s`);
    if (!isFine) {
      failed.push(name);
    }
  }
  return failed;
}
