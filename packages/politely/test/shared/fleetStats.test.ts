import { describe, expect, it } from "vitest";
import { limit } from "../../src/politely.js";
import { Fleet } from "./fleet.js";

const FLEET_FIELDS = [
  "cooldownMs",
  "host",
  "lastRequestAt",
  "throttledRequests",
  "totalRequests",
  "waiting",
  "windows",
];

describe("the statistics of a fleet", () => {
  it("have what the store knows of all processes, and nothing of this one", async () => {
    const fleet = new Fleet();
    const policy = { rate: "1/s", burst: 5, window: "10/min" } as const;
    const [one, other] = [fleet.add(policy), fleet.add(policy)];
    await fleet.now(Promise.all([fleet.demand(one, 2), fleet.demand(other, 1)]));
    const [mine, theirs] = [
      await fleet.now(one.stats("x.org", { fleet: true })),
      await fleet.now(other.stats("x.org", { fleet: true })),
    ];
    expect(Object.keys(mine ?? {}).sort()).toEqual([...FLEET_FIELDS, "tokens", "window"].sort());
    expect(mine).toMatchObject({ host: "x.org", totalRequests: 3, throttledRequests: 0, waiting: 0, cooldownMs: 0 });
    expect(theirs).toMatchObject({ totalRequests: 3, window: { calls: 3, remaining: 7 } });
    const json = mine?.toJSON() ?? {};
    expect(json).toMatchObject({ domain: "x.org", total_requests: 3, throttled_requests: 0 });
    expect(json).not.toHaveProperty("delayed_requests");
    expect(json).not.toHaveProperty("asked");
  });

  it("tell who is in flight only where places are kept", async () => {
    const fleet = new Fleet();
    const [one, other] = [fleet.add({ concurrency: 3 }), fleet.add({ concurrency: 3 })];
    await fleet.now(one.acquire("x.org"));
    await fleet.now(other.acquire("x.org"));
    expect(await fleet.now(one.stats("x.org", { fleet: true }))).toMatchObject({ inFlight: 2 });
    const paced = fleet.add({ rate: "1/s" });
    await fleet.now(paced.acquire("y.org"));
    expect(await fleet.now(paced.stats("y.org", { fleet: true }))).not.toHaveProperty("inFlight");
  });

  it("do not count starts that were given back, one by one or together", async () => {
    const fleet = new Fleet();
    const limiter = fleet.add({ window: "100/min" });
    await fleet.demandNow(limiter, 2);
    const permit = await fleet.now(limiter.acquire("x.org"));
    await fleet.now(permit.release("unused"));
    expect(await fleet.now(limiter.stats("x.org", { fleet: true }))).toMatchObject({ totalRequests: 2 });
    const many = [1, 2, 3, 4].map(() => limiter.acquire("x.org").catch(() => undefined));
    // Asked for, and gone before the store has answered: all four go back as one.
    await limiter.cancelWaiting("x.org");
    await Promise.all(many);
    await fleet.clock.advance(500);
    expect(await fleet.now(limiter.stats("x.org", { fleet: true }))).toMatchObject({
      totalRequests: 2,
      window: { calls: 2 },
    });
  });

  it("are there for a host that only others have called, and absent for one that nobody has", async () => {
    const fleet = new Fleet();
    const [one, other] = [fleet.add({ rate: "1/s" }), fleet.add({ rate: "1/s" })];
    await fleet.demandNow(one, 1);
    expect(await fleet.now(other.stats("x.org", { fleet: true }))).toMatchObject({ totalRequests: 1 });
    expect(await fleet.now(other.stats("never.org", { fleet: true }))).toBeUndefined();
  });

  it("are absent for a host that nothing limits", async () => {
    const fleet = new Fleet();
    const limiter = fleet.add({ rate: "1/s" });
    await limiter.acquire("localhost");
    expect(await fleet.now(limiter.stats("localhost", { fleet: true }))).toBeUndefined();
  });

  it("of one key are zeros before the first start", async () => {
    const fleet = new Fleet();
    const mail = limit({ rate: "1/s" }, { store: fleet.store, clock: fleet.clock, name: "mail" });
    expect(await fleet.now(mail.stats({ fleet: true }))).toMatchObject({ totalRequests: 0, throttledRequests: 0 });
    await expect(mail.stats({ flet: true } as never)).rejects.toThrow('no field "flet"');
  });

  it("are refused while the store is away, since this process does not know them", async () => {
    const fleet = new Fleet();
    const limiter = fleet.add({ rate: "1/s" });
    await fleet.demandNow(limiter, 1);
    fleet.mood = "refusing";
    await expect(fleet.now(limiter.stats("x.org", { fleet: true }))).rejects.toMatchObject({ code: "POLITELY_STORE" });
    expect(await fleet.now(limiter.stats("x.org"))).toMatchObject({ totalRequests: 1 });
  });
});
