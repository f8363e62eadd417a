import { describe, expect, it } from "vitest";
import type { Permit } from "../../src/index.js";
import { expectBooks, granted, many, rig, track } from "../verbs/support.js";

const fast = { default: { rate: "100/s", burst: 100 } } as const;

describe("a listener that asks for a permit in the middle of an event", () => {
  it("gets none beside the probe when it hears of the probe's start", async () => {
    const { clock, limiter } = rig(fast);
    granted(limiter.tryAcquire("a.example")).release("rate_limited");
    await clock.advance(60_000);
    const extra: (Permit | undefined)[] = [];
    limiter.subscribe(({ type }) => {
      if (type === "grant" && extra.length === 0) extra.push(limiter.tryAcquire("a.example"));
    });
    expect(limiter.tryAcquire("a.example")).toBeDefined();
    expect(extra).toEqual([undefined]);
    expect(limiter.tryAcquire("a.example")).toBeUndefined();
  });

  it("gets none when it hears of a release whose answer holds the host", () => {
    const { limiter } = rig(fast);
    const permit = granted(limiter.tryAcquire("a.example"));
    const extra: (Permit | undefined)[] = [];
    limiter.subscribe(({ type }) => {
      if (type === "release") extra.push(limiter.tryAcquire("a.example"));
    });
    permit.release("rate_limited");
    expect(extra).toEqual([undefined]);
  });

  it("gets none when it hears of a recorded start whose answer holds the host", () => {
    const { limiter } = rig(fast);
    const extra: (Permit | undefined)[] = [];
    limiter.subscribe((event) => {
      if (event.type === "grant" && event.recorded) extra.push(limiter.tryAcquire("a.example"));
    });
    limiter.record("a.example", "rate_limited");
    expect(extra).toEqual([undefined]);
  });
});

describe("a listener that reads the statistics when it hears of a release", () => {
  it("does not make the answer of that release go unheard", async () => {
    const { clock, limiter } = rig({ default: { rate: "1/s" } }, { keepStats: 0 });
    const permit = granted(limiter.tryAcquire("a.example"));
    await clock.advance(5_000);
    limiter.subscribe(({ type }) => {
      if (type === "release") limiter.stats();
    });
    permit.release("rate_limited");
    expect(limiter.check("a.example").proceed).toBe(false);
  });

  it("leaves every new host a row of its own", async () => {
    const { clock, limiter } = rig({ default: { rate: "1/s" } }, { keepStats: 0 });
    granted(limiter.tryAcquire("kept.example"));
    const permit = granted(limiter.tryAcquire("a.example"));
    await clock.advance(5_000);
    limiter.subscribe(({ type }) => {
      if (type === "release") limiter.stats();
    });
    permit.release("rate_limited");
    const starts = many(30, (index) => limiter.tryAcquire(`h${index}.example`));
    expect(starts.filter((start) => start === undefined)).toEqual([]);
    expect(limiter.check("a.example").proceed).toBe(false);
    for (const stats of limiter.stats()) expectBooks(stats);
  });
});

describe("a place that comes free while a signal is being aborted", () => {
  it("goes to nobody who waits with that signal, when an abort listener gives it back", async () => {
    const { clock, limiter } = rig({ default: { concurrency: 1 } });
    const controller = new AbortController();
    const permit = granted(limiter.tryAcquire("a.example"));
    controller.signal.addEventListener("abort", () => permit.release("unused"));
    const waiting = track(limiter.acquire("a.example", { signal: controller.signal }));
    controller.abort();
    await clock.settle();
    expect(waiting.state).toBe("failed");
    expectBooks(limiter.stats("a.example"));
  });

  it("goes to nobody who waits with that signal, when who hears of the first cancel gives it back", async () => {
    const { clock, limiter } = rig({ default: { concurrency: 1 } });
    const controller = new AbortController();
    const permit = granted(limiter.tryAcquire("a.example"));
    const waiting = many(3, () => track(limiter.acquire("a.example", { signal: controller.signal })));
    limiter.subscribe(({ type }) => {
      if (type === "cancel") permit.release();
    });
    controller.abort();
    await clock.settle();
    expect(waiting.map(({ state }) => state)).toEqual(["failed", "failed", "failed"]);
    expect(limiter.tryAcquire("a.example")).toBeDefined();
    expectBooks(limiter.stats("a.example"));
  });
});

describe("a source of randomness that throws", () => {
  it("leaves nobody waiting for ever", async () => {
    const random = (): number => {
      throw new Error("no randomness today");
    };
    const { clock, limiter } = rig({ default: { concurrency: 1 } }, { random });
    const permit = granted(limiter.tryAcquire("a.example"));
    const waiting = track(limiter.acquire("a.example"));
    permit.release("server_error");
    await clock.advance(60_000);
    expect(waiting.state).toBe("done");
  });
});
