import { describe, expect, it } from "vitest";
import { expectBooks, granted, many, only, rig, track } from "../verbs/support.js";

describe("a host beyond maxKeys that has no limits", () => {
  it.each([
    ["localhost", "localhost", {}],
    ["a host turned off", "off.example", { "off.example": { enabled: false } }],
  ] as const)("is not paced with the others: %s", async (_title, host, hosts) => {
    const { clock, limiter } = rig({ default: { rate: "1/10s" }, hosts }, { maxKeys: 1 });
    granted(limiter.tryAcquire("a.example"));
    const permits = many(3, () => limiter.tryAcquire(host));
    expect(permits.map((permit) => permit?.key)).toEqual([host, host, host]);
    expect(limiter.check(host)).toEqual({ proceed: true, waitMs: 0 });
    expect(limiter.tryAcquire("b.example")).toBeDefined();
    expect(limiter.tryAcquire("c.example")).toBeUndefined();
    expect(limiter.tryAcquire(host)).toBeDefined();
    const rows = limiter.stats();
    for (const row of rows) expectBooks(row);
    expect(rows.reduce((sum, { granted: starts }) => sum + starts, 0)).toBe(6);
    expect(rows.find(({ host: name }) => name === "(beyond maxKeys)")?.granted).toBe(1);
    for (const permit of permits) permit?.release();
    await clock.advance(7_200_000);
    expect(limiter.stats().reduce((sum, row) => sum + row.granted, 0)).toBe(6);
  });

  it("stays without limits when the policy changes, and takes limits when it gets some", async () => {
    const { limiter } = rig({ default: { rate: "1/10s" } }, { maxKeys: 1 });
    granted(limiter.tryAcquire("a.example"));
    granted(limiter.tryAcquire("localhost"));
    limiter.configure({ default: { rate: "1/20s" }, scopes: { "*": { rate: "1/h" } } });
    expect(many(3, () => limiter.tryAcquire("localhost") !== undefined)).toEqual([true, true, true]);
    limiter.configure({ default: { rate: "1/20s" }, localhost: "limited" });
    expect(many(3, () => limiter.tryAcquire("localhost") !== undefined)).toEqual([true, false, false]);
  });

  it("waits for what it shares with others, and can be cancelled by its name", async () => {
    const off = { enabled: false };
    const policy = { default: { rate: "1/10s" }, hosts: { "off.example": off, "o2.example": off } } as const;
    const { clock, limiter } = rig({ ...policy, global: { rate: "1/10s" } }, { maxKeys: 1 });
    granted(limiter.tryAcquire("a.example"));
    const gone = track(limiter.acquire("off.example"));
    const stays = track(limiter.acquire("o2.example"));
    expect(limiter.cancelWaiting("off.example", "stop")).toBe(1);
    await clock.advance(10_000);
    expect([gone.error, stays.state]).toEqual(["stop", "done"]);
    for (const row of limiter.stats()) expectBooks(row);
  });
});

describe("an intent of a host beyond maxKeys", () => {
  const policy = {
    default: { rate: "1000/s", burst: 1000 },
    hosts: {
      "b.example": { intents: { search: { window: "100/s" } } },
      "c.example": { intents: { search: { window: "1/h" } } },
      "*.wild.example": { intents: { search: { window: "1/h" } } },
    },
  } as const;
  const search = (host: string) => ({ host, intent: "search" });

  it("has the limits of its own host, whoever came first", () => {
    const { limiter } = rig(policy, { maxKeys: 1 });
    granted(limiter.tryAcquire("a.example"));
    expect(many(3, () => limiter.tryAcquire(search("b.example")) !== undefined)).toEqual([true, true, true]);
    expect(many(3, () => limiter.tryAcquire(search("c.example")) !== undefined)).toEqual([true, false, false]);
    expect(limiter.tryAcquire(search("b.example"))).toBeDefined();
  });

  it("makes those who wait for it wait in a lane of their own", async () => {
    const { clock, limiter } = rig(policy, { maxKeys: 1 });
    granted(limiter.tryAcquire("a.example"));
    granted(limiter.tryAcquire(search("c.example")));
    const waiter = track(limiter.acquire(search("c.example")));
    expect(limiter.tryAcquire(search("b.example"))).toBeDefined();
    await clock.advance(3_600_000);
    expect(waiter.state).toBe("done");
  });

  it("owes what it owes when its host gets a row of its own", async () => {
    const { clock, limiter } = rig(policy, { maxKeys: 1 });
    granted(limiter.tryAcquire("a.example")).release();
    granted(limiter.tryAcquire(search("c.example"))).release();
    await clock.advance(60_000);
    limiter.stats();
    expect(limiter.tryAcquire(search("c.example"))).toBeUndefined();
  });

  it("takes no more rows than there may be keys: then the hosts of one entry share it", () => {
    const { limiter } = rig(policy, { maxKeys: 10 });
    for (let index = 0; index < 10; index += 1) granted(limiter.tryAcquire(`h${index}.example`));
    const starts = many(1_000, (index) => limiter.tryAcquire(search(`s${index}.wild.example`)));
    const count = starts.filter((permit) => permit !== undefined).length;
    expect(count).toBeGreaterThan(1);
    expect(count).toBeLessThanOrEqual(10);
  });
});

describe("a pause of a host beyond maxKeys", () => {
  it("holds all of them, and says so", () => {
    const { limiter, events } = rig({ default: { rate: "100/s", burst: 100 } }, { maxKeys: 1 });
    granted(limiter.tryAcquire("a.example"));
    limiter.pause("b.example", "10s");
    expect(limiter.check("c.example").proceed).toBe(false);
    expect(limiter.check("localhost").proceed).toBe(true);
    expect(only(events, "pause").map(({ key }) => key)).toEqual(["(beyond maxKeys)"]);
    const [warning, ...more] = only(events, "warn");
    expect(more).toEqual([]);
    expect(warning).toMatchObject({ key: "b.example" });
    expect(warning.message).toContain("maxKeys of 1");
  });

  it("of a host with a row of its own says nothing", () => {
    const { limiter, events } = rig({ default: { rate: "100/s", burst: 100 } }, { maxKeys: 1 });
    granted(limiter.tryAcquire("a.example"));
    limiter.pause("a.example", "10s");
    expect(only(events, "warn")).toEqual([]);
  });
});
