import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Limiter, type Limits, politely } from "../../src/index.js";
import { VirtualClock } from "../../src/testing/index.js";
import { seeded } from "../laws/seeded.js";

/** Without windows: a window that is new to a host knows no more than the debt as of the last start, and a start in between may have changed that (L11). */
const PACES: readonly Limits[] = [
  {},
  { rate: "2/s", burst: 3 },
  { rate: "1/s", burst: 1 },
  { minDelay: "3s" },
  { minDelay: "1s", rate: "10/s", burst: 5 },
  { rate: "5/s", burst: 2, concurrency: 2 },
  { enabled: false },
];
/** All windows are equally long: of starts that are older than the longest one so far, any grant may forget some. */
const WINDOWS: readonly Limits[] = [
  { window: "2/10s" },
  { window: ["3/10s", "5/10s"] },
  { window: "4/10s", rate: "2/s", burst: 3 },
  { window: "4/10s", minDelay: "1s", concurrency: 2 },
];

/** What a limiter says of a host, as far as starts have to do with it. */
function told(limiter: Limiter, target: string): unknown {
  const { lastRequestAt, windows = [] } = limiter.stats(target) ?? {};
  const calls = windows.reduce((sum, window) => sum + window.calls, 0);
  return [limiter.check(target).waitMs, limiter.elapsedMs(target), lastRequestAt, calls];
}

describe("a start that was never sent", () => {
  it.each([
    ["host.example", PACES],
    ["host.example", WINDOWS],
    ["https://host.example/", PACES],
    ["https://host.example/", WINDOWS],
  ] as const)("is as if it had never been, also for limits that come after it: %s", async (target, all) => {
    const step = fc.record({
      afterMs: fc.integer({ min: 0, max: 4_000 }),
      limits: fc.option(fc.constantFrom(...all), { nil: undefined }),
    });
    const history = fc.record({ first: fc.constantFrom(...all), steps: fc.array(step, { maxLength: 6 }) });
    await fc.assert(
      fc.asyncProperty(history, fc.constantFrom(...all), async ({ first, steps }, last) => {
        const clock = new VirtualClock();
        const [without, with_] = [politely({ default: first }, { clock }), politely({ default: first }, { clock })];
        for (const { afterMs, limits } of steps) {
          await clock.advance(afterMs);
          for (const limiter of [without, with_]) {
            if (limits === undefined) limiter.tryAcquire(target)?.release();
            else limiter.configure({ default: limits });
          }
        }
        with_.tryAcquire(target)?.release("unused");
        for (const limiter of [without, with_]) limiter.configure({ default: last });
        expect(told(with_, target)).toEqual(told(without, target));
      }),
      seeded(300),
    );
  });

  it("forgives no debt by having been", async () => {
    for (const target of ["b.example", "https://b.example/"]) {
      const clock = new VirtualClock();
      const limiter = politely({ default: { rate: "2/s", burst: 3 } }, { clock });
      for (let start = 0; start < 3; start++) (await limiter.acquire(target)).release();
      limiter.configure({ default: {} });
      await clock.advance(100);
      (await limiter.acquire(target)).release();
      await clock.advance(1_300);
      (await limiter.acquire(target)).release("unused");
      limiter.configure({ default: { rate: "1/s", burst: 1 } });
      expect(limiter.check(target).waitMs).toBe(1_200);
    }
  });

  it("is in no window that comes later, also if it had waited", async () => {
    const clock = new VirtualClock();
    const limits: Limits = { rate: "1/s", burst: 1 };
    const limiter = politely({ default: limits }, { clock });
    (await limiter.acquire("c.example")).release();
    const waited = limiter.acquire("c.example");
    await clock.advance(1_000);
    (await waited).release("unused");
    limiter.configure({ default: { ...limits, window: "1/1h" } });
    await clock.advance(3_599_500);
    expect(limiter.stats("c.example")?.window).toMatchObject({ calls: 0 });
    expect(limiter.elapsedMs("c.example")).toBe(3_600_500);
  });
});
