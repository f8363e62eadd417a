import { describe, expect, it } from "vitest";
import type { Limits, PolicyInput } from "../../src/index.js";
import { expectBooks, granted, many, rig, track } from "../verbs/support.js";

const slow: Limits = { rate: "1/10s" };
const plain: PolicyInput = { default: slow };
const byDomain = (url: URL): string => url.hostname.split(".").slice(-2).join(".");
const grouped: PolicyInput = { default: slow, groupBy: byDomain };
const withPort: PolicyInput = { default: slow, hosts: { "x.example:8080": slow } };
const holdForAnHour = { status: 429, headers: { "retry-after": "3600" } };
const port = "http://x.example:8080/";

describe("a group whose name is no host", () => {
  it("survives a change of policy with its debt and those who wait", async () => {
    const { clock, limiter } = rig({ default: slow, groupBy: () => "group one" });
    granted(limiter.tryAcquire("a.example"));
    const waiter = track(limiter.acquire("b.example"));
    limiter.configure(plain);
    await clock.advance(9_999);
    expect(waiter.state).toBe("pending");
    expect(limiter.check("c.example").waitMs).toBe(1);
    await clock.advance(1);
    expect(waiter.value?.startedAtMs).toBe(10_000);
    expectBooks(limiter.stats().find(({ host }) => host === "group one"));
  });
});

describe("a grouping that fails", () => {
  it("leaves the limiter as it works, and the rows that it cannot name as they are", () => {
    const { limiter } = rig(plain);
    granted(limiter.tryAcquire("a.example"));
    granted(limiter.tryAcquire("b.example"));
    limiter.configure({
      default: slow,
      groupBy: (url) => {
        if (url.hostname === "a.example") throw new Error("no group");
        return "others";
      },
    });
    expect(limiter.check("b.example").waitMs).toBe(10_000);
    expect(limiter.check("c.example").waitMs).toBe(10_000);
    limiter.configure(plain);
    expect(limiter.check("a.example").waitMs).toBe(10_000);
  });
});

describe("a site that asked to be left alone for an hour", () => {
  it.each<{ title: string; before: PolicyInput; after: PolicyInput; asked: string; others: string[] }>([
    { title: "groups come", before: plain, after: grouped, asked: "www.x.example", others: ["api.x.example"] },
    {
      title: "groups go",
      before: grouped,
      after: plain,
      asked: "www.x.example",
      others: ["x.example", "api.x.example"],
    },
    {
      title: "groups change",
      before: grouped,
      after: { ...plain, groupBy: (url) => `site ${url.hostname}` },
      asked: "www.x.example",
      others: ["api.x.example"],
    },
    { title: "a port gets limits of its own", before: plain, after: withPort, asked: port, others: ["x.example"] },
    { title: "a port loses its own limits", before: withPort, after: plain, asked: port, others: ["x.example"] },
  ])("is left alone when $title", async ({ before, after, asked, others }) => {
    const { clock, limiter } = rig(before);
    granted(limiter.tryAcquire("x.example")).release("success");
    await clock.advance(20_000);
    granted(limiter.tryAcquire(asked)).release(holdForAnHour);
    limiter.configure(after);
    for (const target of [asked, ...others]) expect(limiter.check(target).waitMs).toBe(3_600_000);
    await clock.advance(3_600_000);
    expect(limiter.tryAcquire(asked)).toBeDefined();
  });

  it("is left alone when the answer comes after two keys have become one", async () => {
    const { clock, limiter } = rig(withPort);
    granted(limiter.tryAcquire("x.example"));
    const late = granted(limiter.tryAcquire(port));
    limiter.configure(plain);
    const waiter = track(limiter.acquire("x.example", { maxWait: "1m" }));
    await clock.advance(1_000);
    late.release(holdForAnHour);
    await clock.settle();
    expect(limiter.check(port).waitMs).toBe(3_600_000);
    expect(waiter.error).toMatchObject({ code: "POLITELY_DEADLINE" });
  });
});

describe("keys that become one", () => {
  it.each<{ title: string; limits: Limits; waitMs: number }>([
    { title: "windows count the starts of both", limits: { window: "4/10s" }, waitMs: 9_000 },
    { title: "a quota counts the starts of both", limits: { quota: { count: 4, per: "hour" } }, waitMs: 3_599_000 },
    { title: "a gap runs from the later start", limits: { minDelay: 500 }, waitMs: 500 },
    { title: "a bucket owes the larger debt", limits: { rate: "1/10s", burst: 3 }, waitMs: 10_000 },
  ])("owe what they owed: $title", async ({ limits, waitMs }) => {
    const own = { default: limits, hosts: { "x.example:8080": limits } };
    const { clock, limiter } = rig(own);
    granted(limiter.tryAcquire("x.example"));
    await clock.advance(1_000);
    many(limits.minDelay === undefined ? 3 : 1, () => granted(limiter.tryAcquire(port)));
    limiter.configure({ default: limits });
    expect(limiter.check("x.example").waitMs).toBe(waitMs);
  });

  it("keep their waiters in line", async () => {
    const { clock, limiter } = rig(withPort);
    granted(limiter.tryAcquire(port));
    const waiters = many(2, () => track(limiter.acquire(port)));
    limiter.configure(plain);
    const last = track(limiter.acquire("x.example"));
    expect(limiter.stats("x.example")).toMatchObject({ granted: 1, waiting: 3 });
    await clock.advance(30_000);
    expect([...waiters, last].map(({ value }) => value?.startedAtMs)).toEqual([10_000, 20_000, 30_000]);
    expect(limiter.cancelWaiting(port)).toBe(0);
  });

  it.each<{ title: string; rule: Limits }>([
    { title: "followed before", rule: { concurrency: 2 } },
    { title: "only counted before", rule: {} },
  ])("have everybody in flight, and who waits goes on when one of them is back: $title", async ({ rule }) => {
    const { clock, limiter } = rig({ default: rule, hosts: { "x.example:8080": rule } });
    const permits = [granted(limiter.tryAcquire("x.example")), granted(limiter.tryAcquire(port))];
    limiter.configure({ default: { concurrency: 2 } });
    const waiter = track(limiter.acquire("x.example"));
    await clock.advance(10);
    expect(waiter.state).toBe("pending");
    expect(limiter.stats("x.example")).toMatchObject({ granted: 2, inFlight: 2, waiting: 1 });
    permits[1].release();
    await clock.advance(10);
    expect(waiter.state).toBe("done");
    expectBooks(limiter.stats("x.example"));
    permits[0].release();
    waiter.value?.release();
    expect(limiter.stats("x.example")).toMatchObject({ granted: 3, inFlight: 0, waiting: 0 });
  });

  it("take no start of each other out of a window when one is returned", () => {
    const limits: Limits = { window: "2/10s" };
    const { limiter } = rig({ default: limits, hosts: { "x.example:8080": limits } });
    granted(limiter.tryAcquire("x.example"));
    const returned = granted(limiter.tryAcquire(port));
    limiter.configure({ default: limits });
    returned.release("unused");
    expect(limiter.check("x.example").waitMs).toBe(10_000);
  });

  it("keep the gap after a start of the other when a later one is returned", async () => {
    const limits: Limits = { minDelay: 1_000 };
    const { clock, limiter } = rig({ default: limits, hosts: { "x.example:8080": limits } });
    granted(limiter.tryAcquire("x.example"));
    await clock.advance(1_900);
    granted(limiter.tryAcquire(port));
    await clock.advance(100);
    const returned = granted(limiter.tryAcquire("x.example"));
    limiter.configure({ default: limits });
    returned.release("unused");
    expect(limiter.check("x.example").waitMs).toBeGreaterThanOrEqual(900);
  });

  it("show under their names alone, and every start stays in the books", async () => {
    const { clock, limiter } = rig(withPort);
    let total = 0;
    for (let round = 0; round < 5; round += 1) {
      limiter.configure(withPort);
      for (const target of ["x.example", port]) {
        const permit = limiter.tryAcquire(target);
        if (permit !== undefined) total += 1;
        if (round % 2 === 0) permit?.release("success");
      }
      limiter.configure(plain);
      const rows = limiter.stats();
      expect(rows.map(({ host }) => host).filter((host) => host !== "*")).toEqual(["x.example"]);
      expect(rows.reduce((sum, row) => sum + row.granted, 0)).toBe(total);
      for (const row of rows) expectBooks(row);
      await clock.advance(11_000);
    }
    expect(total).toBe(10);
  });

  it("are one for their intents too", () => {
    const intents: Record<string, Limits> = { search: { window: "2/h" } };
    const own: PolicyInput = { default: {}, hosts: { "x.example": { intents }, "x.example:8080": { intents } } };
    const { limiter } = rig(own);
    granted(limiter.tryAcquire({ host: "x.example", intent: "search" }));
    granted(limiter.tryAcquire({ url: port, intent: "search" }));
    limiter.configure({ default: {}, hosts: { "x.example": { intents } } });
    expect(limiter.tryAcquire({ url: port, intent: "search" })).toBeUndefined();
    expect(limiter.tryAcquire(port)).toBeDefined();
  });

  it("are forgotten like any other when they owe nothing, idle or not", async () => {
    const { clock, limiter } = rig(withPort, { keepStats: 1 });
    for (let round = 0; round < 4; round += 1) {
      granted(limiter.tryAcquire("x.example")).release("success");
      granted(limiter.tryAcquire(port)).release("success");
      await clock.advance(20_000);
      limiter.stats();
      limiter.configure(plain);
      granted(limiter.tryAcquire(port)).release("success");
      await clock.advance(20_000);
      limiter.stats();
      limiter.configure(withPort);
      granted(limiter.tryAcquire(`new${round}.example`)).release("success");
      await clock.advance(20_000);
    }
    expect(limiter.stats().reduce((sum, row) => sum + row.granted, 0)).toBe(16);
  });
});

describe("a grouping that stays", () => {
  it("keeps what is owed, also when the name of a group would be in another one", () => {
    const policy: PolicyInput = { default: slow, groupBy: (url) => `site-${url.hostname}` };
    const { limiter } = rig(policy);
    granted(limiter.tryAcquire("a.example"));
    limiter.configure({ ...policy });
    expect(limiter.check("a.example").waitMs).toBe(10_000);
    expect(limiter.stats().map(({ host }) => host)).toEqual(["site-a.example"]);
  });
});

describe("a host that leaves its group", () => {
  it("owes for itself, once what the group owed then is paid", async () => {
    const { clock, limiter } = rig(grouped);
    granted(limiter.tryAcquire("www.x.example"));
    limiter.configure(plain);
    expect(limiter.check("api.x.example").waitMs).toBe(10_000);
    await clock.advance(20_000);
    granted(limiter.tryAcquire("x.example")).release(holdForAnHour);
    expect(limiter.check("new.x.example").waitMs).toBe(0);
    expect(limiter.check("api.x.example").waitMs).toBe(0);
  });

  it("counts by its own rule what the group owes by another", () => {
    const { limiter } = rig({ default: { window: "3/min" }, groupBy: byDomain });
    many(2, () => granted(limiter.tryAcquire("www.x.example")));
    limiter.configure({ default: { window: "9/min" }, hosts: { "api.x.example": { window: "2/h" } } });
    expect(limiter.check("api.x.example").waitMs).toBe(3_600_000);
    granted(limiter.tryAcquire("www.x.example"));
    expect(limiter.stats("www.x.example")?.window).toMatchObject({ calls: 3, remaining: 6 });
  });
});
