import { describe, expect, it } from "vitest";
import type { KeyRig } from "./support.js";
import { keyRig, many, rig, track } from "./support.js";

/** Puts named waiters with priorities into the queue and notes the order in which they start. */
function queue({ limiter }: KeyRig, waiters: readonly (readonly [string, number])[], order: string[]): void {
  for (const [name, priority] of waiters) {
    void limiter.acquire({ priority }).then(() => order.push(name));
  }
}

describe("priority", () => {
  it("lets the higher go first, and the earlier of equals", async () => {
    const made = keyRig({ minDelay: 100 });
    await made.limiter.acquire();
    const order: string[] = [];
    queue(
      made,
      [
        ["low", -1],
        ["first", 0],
        ["high", 2],
        ["second", 0],
        ["higher", 2.5],
      ],
      order,
    );
    await made.clock.advance(1_000);
    expect(order).toEqual(["higher", "high", "first", "second", "low"]);
  });

  it("grows by one for each 10 s of waiting", async () => {
    const made = keyRig({ minDelay: "30s" });
    await made.limiter.acquire();
    const order: string[] = [];
    queue(made, [["old", 0]], order);
    await made.clock.advance(9_999);
    queue(made, [["young and important", 1]], order);
    await made.clock.advance(60_000);
    expect(order).toEqual(["young and important", "old"]);
  });

  it("of a newcomer does not beat one who has waited long enough", async () => {
    const made = keyRig({ minDelay: "30s" });
    await made.limiter.acquire();
    const order: string[] = [];
    queue(made, [["old", 0]], order);
    await made.clock.advance(10_000);
    queue(made, [["as important by now", 1]], order);
    await made.clock.advance(60_000);
    expect(order).toEqual(["old", "as important by now"]);
  });

  it("ages as fast as asked", async () => {
    const made = keyRig({ minDelay: "30s" }, { ageing: "1s" });
    await made.limiter.acquire();
    const order: string[] = [];
    queue(made, [["old", 0]], order);
    await made.clock.advance(5_001);
    queue(made, [["young", 5]], order);
    await made.clock.advance(60_000);
    expect(order).toEqual(["old", "young"]);
  });

  it("never starves the lowest under a stream of higher ones", async () => {
    const { clock, limiter } = keyRig({ minDelay: "1s" });
    await limiter.acquire();
    const low = track(limiter.acquire({ priority: 0 }));
    for (let second = 0; second < 60 && low.state === "pending"; second += 1) {
      void many(2, () => track(limiter.acquire({ priority: 2 })));
      await clock.advance(1_000);
    }
    expect(low.value?.startedAtMs).toBeLessThanOrEqual(60_000);
  });

  it("inside a lane nobody passes the one at the head, however heavy it is", async () => {
    const { clock, limiter } = keyRig({ rate: "1/s", burst: 5 });
    await limiter.acquire({ cost: 5 });
    const order: string[] = [];
    void limiter.acquire({ cost: 5 }).then(() => order.push("heavy"));
    void limiter.acquire().then(() => order.push("light"));
    await clock.advance(4_999);
    expect(order).toEqual([]);
    await clock.advance(1);
    expect(order).toEqual(["heavy"]);
    await clock.advance(1_000);
    expect(order).toEqual(["heavy", "light"]);
  });

  it("a higher one that comes later becomes the head and is waited for", async () => {
    const { clock, limiter } = keyRig({ rate: "1/s", burst: 5 });
    await limiter.acquire({ cost: 5 });
    const order: string[] = [];
    void limiter.acquire().then(() => order.push("light"));
    void limiter.acquire({ cost: 5, priority: 1 }).then(() => order.push("heavy"));
    await clock.advance(5_000);
    expect(order).toEqual(["heavy"]);
    await clock.advance(1_000);
    expect(order).toEqual(["heavy", "light"]);
  });

  it("counts between hosts that share a scope", async () => {
    const { clock, limiter } = rig({ default: { minDelay: 1 }, global: { minDelay: 100 } });
    await limiter.acquire("a.org");
    const order: string[] = [];
    for (const [host, priority] of [
      ["b.org", 0],
      ["c.org", 3],
      ["d.org", 1],
    ] as const) {
      void limiter.acquire(host, { priority }).then(() => order.push(host));
    }
    await clock.advance(1_000);
    expect(order).toEqual(["c.org", "d.org", "b.org"]);
  });

  it("does not help over another host's queue where nothing is shared", async () => {
    const { limiter } = rig({ default: { minDelay: 100 } });
    await limiter.acquire("a.org");
    void many(3, () => track(limiter.acquire("a.org", { priority: 100 })));
    expect((await limiter.acquire("b.org", { priority: -100 })).waitedMs).toBe(0);
  });
});
