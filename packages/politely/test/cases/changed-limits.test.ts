import { describe, expect, it } from "vitest";
import type { Limits, Permit, PolicyInput } from "../../src/index.js";
import { expectBooks, granted, many, rig, track } from "../verbs/support.js";

describe("a change of limits while permits are in flight", () => {
  it("starts who waits for a place as soon as a permit from before the change is released", async () => {
    const { clock, limiter } = rig({ default: { rate: "100/s", burst: 10 } });
    const permit = granted(limiter.tryAcquire("a.example"));
    limiter.configure({ default: { concurrency: 1 } });
    const waiting = track(limiter.acquire("a.example"));
    await clock.advance(1_000);
    expect(waiting.state).toBe("pending");
    permit.release();
    await clock.advance(7_200_000);
    expect(waiting.value?.startedAtMs).toBe(1_000);
  });

  it("never lets the return of one start make a new window forget another", async () => {
    const { clock, limiter } = rig({ default: { rate: "10/s", burst: 10 } });
    const returned = granted(limiter.tryAcquire("a.example"));
    await clock.advance(1_000);
    granted(limiter.tryAcquire("a.example"));
    limiter.configure({ default: { window: "1/10s" } });
    expect(limiter.tryAcquire("a.example")).toBeUndefined();
    returned.release("unused");
    expect(limiter.tryAcquire("a.example")).toBeUndefined();
  });
});

describe("a change of limits while somebody waits", () => {
  it("refuses who costs more than the new window holds, also with a cost by kind and a global limit that is new", async () => {
    const { clock, limiter } = rig({ default: { window: "5/10s" } });
    granted(limiter.tryAcquire("a.example", { cost: 5 }));
    const heavy = track(limiter.acquire("a.example", { cost: { window: 5 } }));
    await limiter.acquire("b.example", { cost: 5 });
    limiter.configure({ default: { window: "3/10s" }, global: { rate: "10/s" } });
    await clock.settle();
    expect(heavy.error).toBeInstanceOf(RangeError);
    expectBooks(limiter.stats("a.example"));
  });

  it("gives a new maxWait to those who set none themselves", async () => {
    const { clock, limiter } = rig({ default: { rate: "1/h" } });
    granted(limiter.tryAcquire("a.example"));
    const plain = track(limiter.acquire("a.example"));
    const patient = track(limiter.acquire("a.example", { maxWait: "1d" }));
    limiter.configure({ default: { rate: "1/h", maxWait: "1s" } });
    await clock.advance(10_000);
    expect(plain.error).toMatchObject({ code: "POLITELY_DEADLINE" });
    expect(patient.state).toBe("pending");
  });

  it("changes no start when the limits stay the same", async () => {
    const policy: PolicyInput = { default: {}, global: { rate: "1/10s", burst: 5 } };
    const startsMs = async (isConfigured: boolean): Promise<(number | undefined)[]> => {
      const { clock, limiter } = rig(policy);
      granted(limiter.tryAcquire("x.example", { cost: 5 }));
      const controller = new AbortController();
      track(limiter.acquire("b.example", { signal: controller.signal }));
      const heavy = track(limiter.acquire("a.example", { cost: 5 }));
      const light = track(limiter.acquire("b.example"));
      controller.abort();
      if (isConfigured) limiter.configure(policy);
      await clock.advance(200_000);
      return [heavy, light].map(({ value }) => value?.startedAtMs);
    };
    const plain = await startsMs(false);
    expect(plain).not.toContain(undefined);
    expect(await startsMs(true)).toEqual(plain);
  });
});

describe("a listener that starts something when a change of limits refuses a waiter", () => {
  it.each<{ title: string; policy: PolicyInput }>([
    { title: "the window of its host", policy: { default: { window: "4/10s" }, global: { concurrency: 10 } } },
    {
      title: "the one place of a global limit that is new",
      policy: { default: { window: "4/10s" }, hosts: { "a.example": { window: "9/10s" } }, global: { concurrency: 1 } },
    },
  ])("gets the one start that the new limits leave, and no second: $title", ({ policy }) => {
    const { limiter } = rig({ default: { window: "5/10s" } });
    granted(limiter.tryAcquire("b.example")).release();
    track(limiter.acquire("b.example", { cost: 5 }));
    // Whoever has just started is the fastest to start again.
    many(3, () => granted(limiter.tryAcquire("a.example")));
    let heard: (Permit | undefined)[] = [];
    limiter.subscribe((event) => {
      if (event.type === "refuse" && event.key === "b.example") heard = many(2, () => limiter.tryAcquire("a.example"));
    });
    limiter.configure(policy);
    expect(heard.map((permit) => permit !== undefined)).toEqual([true, false]);
  });

  it("has its start counted under a global limit that is new", () => {
    const { limiter } = rig({ default: { window: "5/10s" } });
    granted(limiter.tryAcquire("b.example"));
    track(limiter.acquire("b.example", { cost: 5 }));
    many(2, () => granted(limiter.tryAcquire("a.example")));
    let heard: Permit | undefined;
    limiter.subscribe((event) => {
      if (event.type === "refuse" && event.key === "b.example") heard = limiter.tryAcquire("a.example");
    });
    limiter.configure({ default: { window: "4/10s" }, global: { window: "1/10s" } });
    expect(heard).toBeDefined();
    expect(limiter.tryAcquire("c.example")).toBeUndefined();
  });
});

describe("debts through a change of limits", () => {
  it("never grow beyond an empty bucket, however often its size changes", async () => {
    const { clock, limiter } = rig({ default: { rate: "1/h", burst: 20 } });
    granted(limiter.tryAcquire("a.example"));
    for (let day = 0; day < 50; day++) {
      for (const burst of [1, 20]) {
        await clock.advance(1);
        limiter.configure({ default: { rate: "1/h", burst } });
      }
    }
    // One of twenty was spent. Since the bucket was smaller in between, it is empty now, and no worse.
    expect(limiter.check("a.example").waitMs).toBeLessThanOrEqual(3_600_000);
  });

  it("begin at the answer for a start in flight when gaps come to count from answers", async () => {
    const { clock, limiter } = rig({ default: { minDelay: "1s", concurrency: 5 } });
    const permit = granted(limiter.tryAcquire("a.example"));
    limiter.configure({ default: { minDelay: "1s", concurrency: 5, countFrom: "answer" } });
    await clock.advance(5_000);
    permit.release("success");
    expect(limiter.tryAcquire("a.example")).toBeUndefined();
    await clock.advance(1_000);
    expect(limiter.tryAcquire("a.example")).toBeDefined();
  });

  it.each<{ title: string; limits: Limits }>([
    { title: "a bucket", limits: { rate: "1/min", burst: 5 } },
    { title: "a window", limits: { window: "5/h" } },
    { title: "a quota", limits: { quota: { count: 5, per: "day" } } },
  ])("are not forgiven by turning a host's limits off and on again: $title", ({ limits }) => {
    const { limiter } = rig({ default: limits });
    many(5, () => granted(limiter.tryAcquire("a.example")));
    expect(limiter.tryAcquire("a.example")).toBeUndefined();
    limiter.configure({ default: { enabled: false } });
    limiter.configure({ default: limits });
    expect(limiter.tryAcquire("a.example")).toBeUndefined();
  });

  it("are kept when an idle host comes to owe time again and a newer one takes its place in the statistics", async () => {
    const { clock, limiter } = rig({ default: { minDelay: "1s" } }, { keepStats: 1 });
    granted(limiter.tryAcquire("a.example")).release();
    await clock.advance(5_000);
    limiter.stats();
    limiter.configure({ default: { minDelay: "1h" }, hosts: { "b.example": {} } });
    granted(limiter.tryAcquire("b.example")).release();
    limiter.stats();
    expect(limiter.tryAcquire("a.example")).toBeUndefined();
  });
});
