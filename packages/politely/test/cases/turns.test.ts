import { describe, expect, it } from "vitest";
import { granted, many, rig, track } from "../verbs/support.js";

describe("the turn of a host at a limit it shares", () => {
  it("is not that of a waiter who has given up: all others start as if it had never come", async () => {
    const startsMs = async (isThere: boolean): Promise<(number | undefined)[]> => {
      const { clock, limiter } = rig({ default: {}, global: { minDelay: "10s" } });
      granted(limiter.tryAcquire("x.example"));
      const controller = new AbortController();
      if (isThere) track(limiter.acquire("a.example", { signal: controller.signal }));
      await clock.advance(1_000);
      const other = track(limiter.acquire("b.example"));
      await clock.advance(1_000);
      const same = track(limiter.acquire("a.example"));
      await clock.advance(1_000);
      controller.abort();
      await clock.advance(100_000);
      return [other, same].map(({ value }) => value?.startedAtMs);
    };
    expect(await startsMs(false)).toEqual([10_000, 20_000]);
    expect(await startsMs(true)).toEqual([10_000, 20_000]);
  });
});

describe("the queue of a global limit that names no maxQueue", () => {
  it("refuses nobody whose own host has room: three hosts with 50,000 each", async () => {
    const { clock, limiter } = rig({ default: { rate: "1/h" }, global: { rate: "1000/s" } });
    const waiting = ["a.example", "b.example", "c.example"].flatMap((host) =>
      many(50_000, () => track(limiter.acquire(host))),
    );
    await clock.settle();
    expect(waiting.filter(({ state }) => state === "failed")).toHaveLength(0);
  });
});

describe("a waiter that leaves from the middle of its lane", () => {
  it("takes the claim of having come first with it, also when another one stood before it", async () => {
    const { clock, limiter } = rig({ default: { minDelay: "1s" }, scopes: { "proxy:*": { concurrency: 9 } } });
    granted(limiter.tryAcquire("c.example"));
    const abort = new AbortController();
    track(limiter.acquire("c.example", { priority: -1, signal: abort.signal }));
    const other = track(limiter.acquire({ host: "c.example", scopes: ["proxy:y"] }));
    await clock.advance(1);
    const plain = track(limiter.acquire("c.example"));
    abort.abort();
    await clock.advance(5_000);
    expect([other.value?.startedAtMs, plain.value?.startedAtMs]).toEqual([1_000, 2_000]);
  });
});
