import { expect, it } from "vitest";
import { politely } from "../../src/politely.js";
import type { SharedLimiter } from "../../src/sharedTypes.js";
import { memoryStore } from "../../src/stores/memory.js";
import type { Store } from "../../src/stores/store.js";
import { VirtualClock } from "../../src/testing/virtualClock.js";
import type { Clock } from "../../src/types.js";

const limits = { default: { quota: { count: 10, per: "day" as const }, rate: "1000/s" as const, burst: 1_000 } };
const dayMs = 86_400_000;

it.each([
  ["a day", 12 * 3_600_000, dayMs],
  ["a minute, half a minute before midnight", 30_000, 60_000],
])(
  "a process whose clock is fast by %s begins no new day by recording a request before anything else",
  async (_title, toMidnightMs, fastMs) => {
    const clock = new VirtualClock({ wallMs: Date.UTC(2026, 0, 2) - toMidnightMs });
    const inner = memoryStore(() => Math.floor(clock.wall() * 1_000));
    const store: Store = {
      name: "server",
      timeline: "epoch",
      transact: (keys, operation) => inner.transact(keys, operation),
    };
    const fast: Clock = {
      now: () => clock.now(),
      wall: () => clock.wall() + fastMs,
      setTimer: (atMs, fn) => clock.setTimer(atMs, fn),
      clearTimer: (timer) => clock.clearTimer(timer),
    };
    const [right, wrong] = [clock, fast].map((own) => politely(limits, { store, clock: own }));
    expect(await used(right, clock)).toBe(10);
    void wrong.record("x.org", "success");
    await clock.advance(100);
    expect(await used(right, clock)).toBe(0);
  },
);

/** How many of twelve requests start at once. */
async function used(limiter: SharedLimiter, clock: VirtualClock): Promise<number> {
  let started = 0;
  for (let asked = 0; asked < 12; asked++) {
    void limiter.tryAcquire("x.org").then((permit) => {
      if (permit !== undefined) started += 1;
    });
  }
  await clock.advance(100);
  return started;
}
