import { describe, expect, it } from "vitest";
import type { Limits, PolicyInput } from "../../src/index.js";
import { expectBooks, granted, many, rig, track } from "../verbs/support.js";

const byDomain = (url: URL): string => url.hostname.split(".").slice(-2).join(".");
const port = "http://x.example:8080/";

describe("a key that is new", () => {
  it("begins with what its intents owed, also when its host owes nothing", async () => {
    const own: PolicyInput["hosts"] = { "x.example": { minDelay: "1s", intents: { search: { window: "1/min" } } } };
    const { clock, limiter } = rig({ hosts: own });
    const target = { url: port, intent: "search" };
    granted(limiter.tryAcquire(target)).release();
    await clock.advance(2_000);
    limiter.stats();
    limiter.configure({ hosts: { ...own, "x.example:8080": own["x.example"] } });
    expect(limiter.check(target).waitMs).toBe(58_000);
  });

  it.each<{ title: string; before: PolicyInput; after: PolicyInput; target: string }>([
    {
      title: "a host that leaves its group",
      before: { default: { minDelay: "1s" }, groupBy: byDomain },
      after: { default: { minDelay: "1m" } },
      target: "a.x.example",
    },
    {
      title: "a port that gets limits of its own",
      before: { default: { minDelay: "1s" } },
      after: { default: { minDelay: "1s" }, hosts: { "x.example:8080": { window: "1/min" } } },
      target: port,
    },
  ])("counts the last start under a limit that is longer than the one before: $title", async (each) => {
    const { clock, limiter } = rig(each.before);
    granted(limiter.tryAcquire(each.target)).release();
    await clock.advance(2_000);
    limiter.configure(each.after);
    await clock.advance(1_000);
    expect(limiter.check(each.target).waitMs).toBe(57_000);
    await clock.advance(57_000);
    expect(limiter.check(each.target).waitMs).toBe(0);
  });

  it("keeps a gap that was away while its host was part of a group", async () => {
    const spaced: PolicyInput = { default: { minDelay: "1m" } };
    const { clock, limiter } = rig(spaced);
    granted(limiter.tryAcquire("a.x.example")).release();
    await clock.advance(1_000);
    limiter.configure({ default: { rate: "100/s" }, groupBy: byDomain });
    await clock.advance(1_000);
    limiter.configure(spaced);
    expect(limiter.check("a.x.example").waitMs).toBe(58_000);
  });

  it("owes nothing for what its old key does long after the change", async () => {
    const { clock, limiter } = rig({ default: { minDelay: "1s" } });
    granted(limiter.tryAcquire("x.example")).release();
    limiter.configure({ default: { minDelay: "1s" }, hosts: { "x.example:8080": { minDelay: "1m" } } });
    await clock.advance(60_000);
    granted(limiter.tryAcquire("x.example")).release();
    expect(limiter.check(port).waitMs).toBe(0);
  });
});

describe("keys that become one while a limit is away", () => {
  it.each<{ title: string; limits: Limits; waitMs: number }>([
    { title: "a quota", limits: { quota: { count: 3, per: "hour" } }, waitMs: 3_598_000 },
    { title: "a window", limits: { window: "3/h" }, waitMs: 3_598_000 },
  ])("owe it together when it is back, whoever started first: $title", async ({ limits, waitMs }) => {
    for (const order of [
      ["a.x.example", "a.x.example", "b.x.example"],
      ["b.x.example", "a.x.example", "a.x.example"],
    ]) {
      const { clock, limiter } = rig({ default: limits });
      for (const name of order) granted(limiter.tryAcquire(name)).release();
      await clock.advance(1_000);
      limiter.configure({ default: { concurrency: 9 }, groupBy: byDomain });
      await clock.advance(1_000);
      limiter.configure({ default: limits, groupBy: byDomain });
      expect(limiter.check("a.x.example").waitMs).toBe(waitMs);
    }
  });

  it("owe together what a window counted that has become shorter", async () => {
    const { clock, limiter } = rig({ default: { window: "4/min" } });
    for (const name of ["a.x.example", "b.x.example"]) many(2, () => granted(limiter.tryAcquire(name)).release());
    await clock.advance(5_000);
    limiter.configure({ default: { window: "9/s" }, groupBy: byDomain });
    limiter.configure({ default: { window: "4/min" }, groupBy: byDomain });
    expect(limiter.check("a.x.example").waitMs).toBe(55_000);
  });
});

describe("a permit from before its key became part of another", () => {
  const limits: Limits = { window: "2/10h", concurrency: 5, maxHold: "1h" };
  const long: PolicyInput = { default: { ...limits, maxHold: "20h" }, groupBy: byDomain };

  it.each(["unused", "rate_limited"] as const)(
    "says nothing about strangers, however long permits may be held by now: %s",
    async (outcome) => {
      const { clock, limiter } = rig({ default: limits });
      const permits = ["b.x.example", "a.x.example"].map((name) => granted(limiter.tryAcquire(name)));
      await clock.advance(1_000);
      limiter.configure({ default: limits, groupBy: byDomain });
      limiter.configure(long);
      await clock.advance(3 * 3_600_000);
      limiter.configure(long);
      const strangers = ["p.example", "q.example", "r.example"];
      for (const name of strangers) many(2, () => granted(limiter.tryAcquire(name)));
      const causes = strangers.map((name) => limiter.explain(name).causes);
      for (const permit of permits) permit.release(outcome);
      expect(strangers.map((name) => limiter.explain(name).causes)).toEqual(causes);
    },
  );

  it("leaves nothing behind when it can no longer be open", async () => {
    const { clock, limiter } = rig({ default: limits });
    for (const name of ["b.x.example", "a.x.example"]) granted(limiter.tryAcquire(name));
    limiter.configure(long);
    await clock.advance(21 * 3_600_000);
    limiter.configure(long);
    expect(limiter.stats("x.example")).toMatchObject({ inFlight: 0, lapsed: 2 });
    expect(limiter.check("x.example").waitMs).toBe(0);
  });
});

describe("those who wait under the name of a group", () => {
  const spaced: PolicyInput = { default: { minDelay: "1s" } };

  it("wait at their hosts when the groups go, before those who come later", async () => {
    const { clock, limiter } = rig({ ...spaced, groupBy: byDomain });
    const old = many(4, () => track(limiter.acquire("http://a.x.example/")));
    const other = track(limiter.acquire({ url: new URL("http://b.x.example/") }));
    await clock.advance(1_500);
    limiter.configure(spaced);
    const late = track(limiter.acquire("a.x.example"));
    await clock.advance(10_000);
    expect([...old, other, late].map(({ value }) => [value?.key, value?.startedAtMs])).toEqual([
      ["x.example", 0],
      ["x.example", 1_000],
      ["a.x.example", 2_000],
      ["a.x.example", 3_000],
      ["b.x.example", 2_000],
      ["a.x.example", 4_000],
    ]);
    for (const row of limiter.stats()) expectBooks(row);
  });

  it("stay where they are when the new grouping fails for them", async () => {
    const { clock, limiter } = rig({ ...spaced, groupBy: byDomain });
    const waiters = many(2, () => track(limiter.acquire("a.x.example")));
    limiter.configure({
      ...spaced,
      groupBy: () => {
        throw new Error("no group");
      },
    });
    await clock.advance(1_000);
    expect(waiters.map(({ value }) => value?.startedAtMs)).toEqual([0, 1_000]);
  });
});
