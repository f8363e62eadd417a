import { describe, expect, it } from "vitest";
import type { LimiterEvent } from "../../src/observe/types.js";
import { limit } from "../../src/politely.js";
import { VirtualOrigin } from "../../src/testing/virtualOrigin.js";
import { Fleet, leastGap } from "./fleet.js";

describe("a limiter with a store", () => {
  it("tries without waiting: one gets the start, the other nothing, and neither waits", async () => {
    const fleet = new Fleet();
    const [one, other] = [fleet.add({ rate: "1/s" }), fleet.add({ rate: "1/s" })];
    const permit = await fleet.now(one.tryAcquire("x.org"));
    expect(permit).toMatchObject({ key: "x.org", waitedMs: 0 });
    expect(permit?.token).toBeGreaterThan(0);
    expect(await fleet.now(other.tryAcquire("x.org"))).toBeUndefined();
    const stats = await fleet.now(other.stats("x.org"));
    expect(stats).toMatchObject({ asked: 1, refused: 1, granted: 0 });
  });

  it("never overtakes those who wait in the process with tryAcquire", async () => {
    const fleet = new Fleet();
    const limiter = fleet.add({ rate: "1/s" });
    await fleet.demandNow(limiter, 1);
    const waiting = fleet.demand(limiter, 1);
    await fleet.clock.advance(900);
    expect(await limiter.tryAcquire("x.org")).toBeUndefined();
    await fleet.clock.advance(200);
    await waiting;
    expect(fleet.starts).toHaveLength(2);
  });

  it("checks and explains what another process has caused, and takes nothing", async () => {
    const fleet = new Fleet();
    const [one, other] = [fleet.add({ rate: "1/10s" }), fleet.add({ rate: "1/10s" })];
    expect(await fleet.now(other.check("x.org"))).toEqual({ proceed: true, waitMs: 0 });
    await fleet.demandNow(one, 1);
    const decision = await fleet.now(other.check("x.org"));
    expect(decision.proceed).toBe(false);
    expect(decision.waitMs).toBeGreaterThan(9_000);
    expect(decision.reason).toContain("rate 1/10s");
    const explanation = await fleet.now(other.explain("x.org"));
    expect(explanation.causes[0]).toMatchObject({ limit: "rate", scope: "host", key: "x.org" });
    expect(await fleet.now(other.elapsedMs("x.org"))).toBeLessThan(100);
    expect(await fleet.now(other.elapsedMs("y.org"))).toBe(Number.POSITIVE_INFINITY);
  });

  it("tells its own counts with the fleet's bucket, and the fleet's counts when asked", async () => {
    const fleet = new Fleet();
    const policy = { rate: "1/s", burst: 5, window: "10/min" } as const;
    const [one, other] = [fleet.add(policy), fleet.add(policy)];
    await fleet.now(Promise.all([fleet.demand(one, 2), fleet.demand(other, 1)]));
    const own = await fleet.now(one.stats("x.org"));
    expect(own).toMatchObject({ totalRequests: 2, window: { calls: 3, remaining: 7 } });
    expect(own?.tokens).toBeLessThan(2.2);
    const all = await fleet.now(one.stats("x.org", { fleet: true }));
    expect(all?.totalRequests).toBe(3);
    expect(all?.toJSON()).toMatchObject({ total_requests: 3 });
    expect(await fleet.now(other.stats("never.org"))).toBeUndefined();
  });

  it("holds everybody when one process hears a 429, within a round trip and 100 ms", async () => {
    const fleet = new Fleet({ roundTripMs: 4 });
    const [one, other] = [fleet.add({ rate: "50/s" }), fleet.add({ rate: "50/s" })];
    const events: LimiterEvent[] = [];
    one.subscribe((event) => events.push(event));
    const permit = await fleet.now(one.acquire("x.org"));
    const waiting = fleet.demand(other, 20);
    await fleet.clock.advance(100);
    const before = fleet.clock.now();
    const released = permit.release({ status: 429, headers: { "retry-after": "30" } });
    await fleet.clock.advance(10);
    await released;
    await fleet.clock.advance(25_000);
    const late = fleet.starts.filter(({ atMs }) => atMs > before + 104);
    expect(late).toEqual([]);
    expect(events.find(({ type }) => type === "cooldown")).toMatchObject({ key: "x.org", step: 1 });
    expect((await fleet.now(other.explain("x.org"))).causes[0]).toMatchObject({ limit: "cooldown" });
    await fleet.clock.advance(60_000);
    await waiting;
    expect(fleet.starts).toHaveLength(20);
  });

  it("pauses a host for all, and resumes it", async () => {
    const fleet = new Fleet();
    const [one, other] = [fleet.add({ rate: "10/s" }), fleet.add({ rate: "10/s" })];
    await fleet.now(one.pause("x.org"));
    const waiting = fleet.demand(other, 1);
    await fleet.clock.advance(5_000);
    expect(fleet.starts).toHaveLength(0);
    await fleet.now(one.resume());
    await fleet.clock.advance(121_000);
    await waiting;
    expect(fleet.starts).toHaveLength(1);
  });

  it("resets a host for all", async () => {
    const fleet = new Fleet();
    const [one, other] = [fleet.add({ rate: "1/min" }), fleet.add({ rate: "1/min" })];
    await fleet.demandNow(one, 1);
    await fleet.now(other.reset("x.org"));
    await fleet.demandNow(one, 1);
    expect(fleet.starts).toHaveLength(2);
  });

  it("records starts made elsewhere, with their answers", async () => {
    const fleet = new Fleet();
    const [one, other] = [fleet.add({ rate: "1/10s" }), fleet.add({ rate: "1/10s" })];
    await fleet.now(one.record("x.org", "success"));
    expect((await fleet.now(other.check("x.org"))).proceed).toBe(false);
    await fleet.now(one.record("y.org", { status: 429, headers: { "retry-after": "120" } }));
    const causes = (await fleet.now(other.explain("y.org"))).causes;
    expect(causes[0]).toMatchObject({ limit: "cooldown" });
    expect(causes[0].waitMs).toBeGreaterThan(118_000);
  });

  it("puts another policy in force for those who wait", async () => {
    const fleet = new Fleet();
    const limiter = fleet.add({ rate: "1/10s" });
    await fleet.demandNow(limiter, 1);
    const waiting = fleet.demand(limiter, 3);
    await fleet.clock.advance(100);
    await limiter.configure({ default: { rate: "10/s" } });
    await fleet.clock.advance(45_000);
    await waiting;
    expect(leastGap(fleet.startsUs())).toBeGreaterThanOrEqual(100_000);
    expect(fleet.startsUs()[3]).toBeLessThan(41_000_000);
  });

  it("closes: waiters are told, and what was not used is free for the others", async () => {
    const fleet = new Fleet();
    const [one, other] = [fleet.add({ rate: "1/s" }), fleet.add({ rate: "1/s" })];
    await fleet.demandNow(one, 1);
    const refused = one.acquire("x.org").catch((error: unknown) => error);
    await fleet.clock.advance(500);
    await fleet.now(one.close());
    expect(await refused).toMatchObject({ code: "POLITELY_CLOSED" });
    await expect(one.tryAcquire("x.org")).rejects.toMatchObject({ code: "POLITELY_CLOSED" });
    const next = fleet.demand(other, 1);
    await fleet.clock.advance(1_500);
    await next;
  });

  it("leaves a localhost that the policy does not name alone, without asking", async () => {
    const fleet = new Fleet();
    const limiter = fleet.add({ rate: "1/min" });
    await Promise.all([limiter.acquire("localhost"), limiter.acquire("localhost")]);
    expect(fleet.calls).toBe(0);
  });

  it("paces fetch", async () => {
    const fleet = new Fleet();
    const limits = [{ kind: "sliding-window", rate: "2/s" }] as const;
    const origin = new VirtualOrigin({ clock: fleet.clock, latency: 50, limits });
    const limiter = fleet.add({ window: "2/s", countFrom: "answer" }, { fetch: origin.fetch });
    const work = Promise.all(Array.from({ length: 6 }, async () => (await limiter.fetch("https://x.org/")).status));
    await fleet.clock.advance(60_000);
    expect(await work).toEqual([200, 200, 200, 200, 200, 200]);
  });

  it("runs and wraps, and gives one key the same verbs", async () => {
    const fleet = new Fleet();
    const one = limit({ rate: "1/s" }, { store: fleet.store, clock: fleet.clock, name: "one" });
    expect(await fleet.now(one.run((permit) => permit.key))).toBe("limit");
    const work = one.wrap((value: number) => value + 1)(1);
    await fleet.clock.advance(1_100);
    expect(await work).toBe(2);
    expect((await fleet.now(one.stats())).totalRequests).toBe(2);
    await fleet.now(one.configure({ rate: "5/s" }));
    await fleet.now(one.close());
  });

  it.each([
    [{ store: {} }, "store must be a store"],
    [{ outage: "maybe" }, "outage must be"],
    [{ batch: 1 }, "batch must be"],
    [{ name: 5 }, "name must be"],
    [{ bacth: true }, 'no field "bacth"'],
  ])("refuses options that make no sense: %j", (options, words) => {
    const fleet = new Fleet();
    expect(() => fleet.add({ rate: "1/s" }, options as object)).toThrow(words);
  });

  it("tells with each grant when it starts on the store's timeline, as its permit does", async () => {
    const fleet = new Fleet();
    const limiter = fleet.add({ minDelay: "100ms" });
    const grants: LimiterEvent[] = [];
    limiter.subscribe((event) => {
      if (event.type === "grant") grants.push(event);
    });
    await fleet.demandNow(limiter, 3);
    const told = grants.map((event) => (event.type === "grant" ? event.startedAtMs : undefined));
    expect(told).toEqual(fleet.starts.map(({ atMs }) => atMs));
    expect(told).toHaveLength(3);
  });
});
