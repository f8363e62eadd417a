import { describe, expect, it } from "vitest";
import type { Limits, PolicyInput } from "../../src/index.js";
import { granted, many, rig } from "../verbs/support.js";

const host = "a.example";
const all = (limits: Limits): PolicyInput => ({ default: limits });

describe("a limit that is taken away and given back", () => {
  it.each<{ title: string; without: Limits }>([
    { title: "no limit at all", without: {} },
    { title: "limits turned off", without: { enabled: false } },
    { title: "another limit", without: { concurrency: 9 } },
  ])("never makes room for a start made meanwhile by taking another one out: $title", async ({ without }) => {
    const window: Limits = { window: "2/10s" };
    const { clock, limiter } = rig(all(window));
    granted(limiter.tryAcquire(host)).release("success");
    limiter.configure(all(without));
    await clock.advance(9_000);
    const between = granted(limiter.tryAcquire(host));
    await clock.advance(100);
    granted(limiter.tryAcquire(host));
    limiter.configure(all(window));
    await clock.advance(900);
    // The first has left; the two made meanwhile count.
    expect(limiter.tryAcquire(host)).toBeUndefined();
    between.release("unused");
    granted(limiter.tryAcquire(host));
    expect(limiter.tryAcquire(host)).toBeUndefined();
    expect(limiter.check(host).waitMs).toBe(9_100);
  });

  it.each<{ title: string; limits: Limits; waitMs: number }>([
    { title: "window", limits: { window: "1/10s" }, waitMs: 9_500 },
    // It still owed 1 s when that start was made.
    { title: "rate", limits: { rate: "1/10s" }, waitMs: 10_500 },
    { title: "minDelay", limits: { minDelay: "10s" }, waitMs: 9_500 },
  ])("counts the last start that was made meanwhile: $title", async ({ limits, waitMs }) => {
    const { clock, limiter } = rig(all(limits));
    granted(limiter.tryAcquire(host)).release("success");
    await clock.advance(1_000);
    limiter.configure(all({}));
    await clock.advance(8_000);
    granted(limiter.tryAcquire(host)).release("success");
    await clock.advance(500);
    limiter.configure(all(limits));
    expect(limiter.check(host).waitMs).toBe(waitMs);
  });

  it("counts no start twice that it knew before", async () => {
    const limits: Limits = { window: "2/10s", rate: "1/10s", burst: 2 };
    const { clock, limiter } = rig(all(limits));
    granted(limiter.tryAcquire(host)).release("success");
    limiter.configure(all({}));
    await clock.advance(1_000);
    limiter.configure(all(limits));
    expect(limiter.stats(host)?.window).toMatchObject({ calls: 1 });
    expect(limiter.check(host).waitMs).toBe(0);
  });

  it("adds a start made meanwhile to what a bucket owed before", async () => {
    const limits: Limits = { rate: "1/10s", burst: 3 };
    const { clock, limiter } = rig(all(limits));
    many(2, () => granted(limiter.tryAcquire(host)));
    limiter.configure(all({}));
    await clock.advance(1_000);
    granted(limiter.tryAcquire(host));
    limiter.configure(all(limits));
    expect(limiter.check(host).waitMs).toBe(9_000);
  });
});

describe("a window from the answer that is taken away and given back", () => {
  const answer: Limits = { window: "1/10s", countFrom: "answer" };

  it.each<{ title: string; without: Limits }>([
    { title: "answers still count", without: { countFrom: "answer" } },
    { title: "nothing counts", without: {} },
    { title: "limits turned off", without: { enabled: false } },
  ])("knows of an answer that came meanwhile: $title", async ({ without }) => {
    const { clock, limiter } = rig(all(answer));
    const permit = granted(limiter.tryAcquire(host));
    await clock.advance(100);
    limiter.configure(all(without));
    await clock.advance(100);
    permit.release("success");
    await clock.advance(100);
    limiter.configure(all(answer));
    expect(limiter.check(host).waitMs).toBe(9_900);
  });

  it("knows of an answer that came much later, however long ago the window went", async () => {
    const { clock, limiter } = rig(all(answer));
    const permit = granted(limiter.tryAcquire(host));
    limiter.configure(all({}));
    await clock.advance(60_000);
    permit.release("success");
    await clock.advance(1_000);
    limiter.stats();
    limiter.configure(all(answer));
    expect(limiter.check(host).waitMs).toBe(9_000);
  });

  it.each<{ title: string; after: Limits; waitMs: number }>([
    { title: "from the start, when it counts from there now", after: { window: "1/10s" }, waitMs: 9_700 },
    { title: "until its answer, when it counts from there again", after: answer, waitMs: 10_000 },
  ])("knows who is in flight: $title", async ({ after, waitMs }) => {
    const { clock, limiter } = rig(all(answer));
    granted(limiter.tryAcquire(host));
    await clock.advance(100);
    limiter.configure(all({ concurrency: 5 }));
    await clock.advance(200);
    limiter.configure(all(after));
    expect(limiter.check(host).waitMs).toBe(waitMs);
  });

  it("keeps its gap from an answer that came meanwhile", async () => {
    const spaced: Limits = { minDelay: "10s", countFrom: "answer" };
    const { clock, limiter } = rig(all(spaced));
    const permit = granted(limiter.tryAcquire(host));
    limiter.configure(all({}));
    await clock.advance(5_000);
    permit.release("success");
    limiter.configure(all(spaced));
    expect(limiter.check(host).waitMs).toBe(10_000);
  });
});

describe("a bucket that is new", () => {
  it("forgets none of those in flight when one of them is returned", () => {
    const { limiter } = rig(all({ concurrency: 10 }));
    const permits = many(3, () => granted(limiter.tryAcquire(host)));
    limiter.configure(all({ rate: "1/10s" }));
    expect(limiter.check(host).waitMs).toBe(30_000);
    permits[2].release("unused");
    expect(limiter.check(host).waitMs).toBe(20_000);
  });
});

describe("a start from before its key was reset", () => {
  it.each([1, 7, 8, 9])("makes no room when it is returned, after %i resets", async (resets) => {
    const { clock, limiter } = rig(all({ window: "1/10s" }));
    const before = granted(limiter.tryAcquire(host));
    await clock.advance(1_000);
    many(resets, () => limiter.reset(host));
    granted(limiter.tryAcquire(host));
    before.release("unused");
    expect(limiter.tryAcquire(host)).toBeUndefined();
  });

  it("is told from one that comes after, at the same instant too", () => {
    const { limiter } = rig(all({ window: "1/10s" }));
    granted(limiter.tryAcquire(host));
    limiter.reset(host);
    granted(limiter.tryAcquire(host)).release("unused");
    expect(limiter.check(host).waitMs).toBe(0);
  });
});

describe("a heavy start that is returned", () => {
  it("leaves its window, however much was started after it", async () => {
    const { clock, limiter } = rig(all({ window: "1000000000/h" }));
    const cost = 10_000_000;
    const first = granted(limiter.tryAcquire(host, { cost }));
    for (let index = 0; index < 60; index += 1) {
      await clock.advance(1);
      granted(limiter.tryAcquire(host, { cost }));
    }
    first.release("unused");
    expect(limiter.stats(host)?.window).toMatchObject({ calls: 600_000_000 });
  });
});
