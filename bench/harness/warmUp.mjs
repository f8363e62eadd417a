// @ts-check
import { pauseMs } from "./timing.mjs";

/**
 * Lets the code of `rival` run hot with 200 starts at 2,000 a second, so that the first starts that count are not those that compile it.
 *
 * @param {import("../measures/types.d.ts").Rival} rival
 * @param {object} options
 * @param {boolean} [isWindow]
 */
export async function warmUp(rival, options, isWindow = false) {
  let started = 0;
  const onStart = () => {
    started++;
  };
  const begin = rival.paced({ count: 20, perMs: 10, burst: 20, isWindow }, onStart, undefined, options);
  for (let i = 0; i < 200; i++) begin();
  while (started < 200) await pauseMs(5);
}
