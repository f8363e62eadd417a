import { describe, expect, it } from "vitest";
import { politely } from "../../src/politely.js";
import type { SharedOptions } from "../../src/sharedTypes.js";
import { cellStore } from "../../src/stores/cellStore.js";
import type { Cells } from "../../src/stores/cells.js";
import { memoryCells } from "../../src/stores/memory.js";
import { VirtualClock } from "../../src/testing/virtualClock.js";

/** A place of which some connections have died without a word: what goes there is never answered. */
function leaky(clock: VirtualClock, isDead: (number: number) => boolean): Cells & { asked: number; open: number } {
  const inner = memoryCells(() => Math.floor(clock.now() * 1000));
  const cells = {
    ...inner,
    asked: 0,
    open: 0,
    change: ((keys, change) => {
      cells.asked += 1;
      if (!isDead(cells.asked)) return inner.change(keys, change);
      cells.open += 1;
      return new Promise(() => undefined);
    }) as Cells["change"],
  };
  return cells;
}

/** A limiter over it, with the events of its outages. */
function limiterOver(cells: Cells, clock: VirtualClock, options: Partial<SharedOptions> = {}) {
  const limiter = politely(
    { default: { window: "100/h" } },
    { store: cellStore(cells), clock, outage: "closed", ...options },
  );
  const outages: string[] = [];
  limiter.subscribe((event) => {
    if (event.type === "outage") outages.push(event.message);
  });
  return { limiter, outages };
}

describe("a connection that hangs while the store is well", () => {
  it("delays those who wait for it by one try, and is no outage", async () => {
    const clock = new VirtualClock();
    const { limiter, outages } = limiterOver(
      leaky(clock, (number) => number === 1),
      clock,
    );
    const starts = Promise.all(Array.from({ length: 5 }, () => limiter.acquire("x.org")));
    await clock.advance(2_000);
    expect(await starts).toHaveLength(5);
    expect(outages).toEqual([]);
    const stats = limiter.stats("x.org", { fleet: true });
    await clock.advance(10);
    expect(await stats).toMatchObject({ totalRequests: 5 });
  });

  it("is none either when the second one hangs, too", async () => {
    const clock = new VirtualClock();
    const { limiter, outages } = limiterOver(
      leaky(clock, (number) => number <= 2),
      clock,
    );
    const start = limiter.acquire("x.org");
    await clock.advance(4_000);
    await start;
    expect(outages).toEqual([]);
  });

  it("does not keep the store from being found well again after an outage", async () => {
    const clock = new VirtualClock();
    let isDown = true;
    const { limiter, outages } = limiterOver(
      leaky(clock, () => isDown),
      clock,
    );
    const refused = limiter.acquire("x.org").catch(() => "refused");
    await clock.advance(10_000);
    expect(await refused).toBe("refused");
    isDown = false;
    await clock.advance(10_000);
    expect(outages).toHaveLength(2);
    const start = limiter.acquire("x.org");
    await clock.advance(2_000);
    await start;
  });

  it("is not asked for ever: so many changes of the same keys are under way at most", async () => {
    const clock = new VirtualClock();
    const cells = leaky(clock, () => true);
    const store = cellStore(cells);
    const about = { agesUs: [], counts: [], meant: 0, random: 0 };
    const told = { kind: "record", asker: "p.1", number: 1, isAgain: false, keys: [], ...about } as const;
    for (let time = 0; time < 100; time++) void store.transact(["x"], told);
    expect(cells.open).toBeLessThanOrEqual(8);
    expect(cells.open).toBeGreaterThan(1);
  });
});
