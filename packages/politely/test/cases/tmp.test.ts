import { it } from "vitest";
import { keyRig, many, startsOf } from "../verbs/support.js";
it("x", async () => {
  for (const n of [50, 500, 1000, 2000, 4000]) {
    const { clock, limiter } = keyRig({ rate: "7/s", burst: 1 });
    let timers = 0; const s = clock.setTimer.bind(clock); clock.setTimer = (a, f) => { timers++; return s(a, f); };
    const t = performance.now();
    const permits = many(n + 1, () => limiter.acquire());
    const t1 = performance.now();
    await clock.advance((n * 1000) / 7 + 1);
    await startsOf(permits);
    console.log(n, timers, t1 - t, performance.now() - t1);
  }
});
