import { expect, it } from "vitest";
import { StoreError } from "../../src/errors.js";
import { Fleet } from "./fleet.js";

/** What somebody is told, a rejection too. */
function soft<Value>(work: Promise<Value>): Promise<unknown> {
  return work.catch((error: unknown) => error);
}

it("uses no grant of one cost for a head of another cost", async () => {
  const fleet = new Fleet({ roundTripMs: 20 });
  const one = fleet.add({ rate: "10/min", burst: 10 });
  const told: number[] = [];
  let units = 0;
  for (let i = 0; i < 5; i++) {
    void one.acquire("x.org", { cost: 1 }).then(() => {
      units += 1;
      told.push(1);
    });
    await fleet.clock.advance(2);
    void one.acquire("x.org", { cost: 10, priority: 1000 }).then(() => {
      units += 10;
      told.push(10);
    });
    await fleet.clock.advance(100);
  }
  expect(units).toBeLessThanOrEqual(10);
});

it("uses no grant of a head that has gone for one that costs more", async () => {
  const fleet = new Fleet({ roundTripMs: 20 });
  const one = fleet.add({ rate: "10/min", burst: 10 });
  let units = 0;
  for (let i = 0; i < 5; i++) {
    const control = new AbortController();
    void one.acquire("x.org", { cost: 1, signal: control.signal }).then(
      () => (units += 1),
      () => 0,
    );
    await fleet.clock.advance(2);
    void soft(one.acquire("x.org", { cost: 10 }).then(() => (units += 10)));
    control.abort();
    await fleet.clock.advance(100);
    await one.cancelWaiting().catch(() => 0);
  }
  expect(units).toBeLessThanOrEqual(10);
});

it("obeys another policy with the first start after it, though a question was under way", async () => {
  const fleet = new Fleet({ roundTripMs: 20 });
  const one = fleet.add({ rate: "1000/s", burst: 100 });
  let n = 0;
  for (let i = 0; i < 40; i++) void one.acquire("x.org").then(() => n++);
  await fleet.clock.advance(5);
  await one.configure({ default: { minDelay: "10s" } });
  expect(n).toBe(0);
  await fleet.clock.advance(1000);
  expect(n).toBe(1);
});

it("names a place with a short lifetime in time, whatever others live for", async () => {
  const fleet = new Fleet();
  const policy = { default: { concurrency: 1 }, hosts: { "b.org": { concurrency: 1, permitTtl: "3s" } } } as const;
  const one = fleet.add(policy);
  const two = fleet.add(policy);
  await fleet.now(one.acquire("a.org"));
  const b = await fleet.now(one.acquire("b.org"));
  let got = false;
  void two.acquire("b.org").then(() => (got = true));
  await fleet.clock.advance(8000);
  expect(got).toBe(false);
  void b.release();
});

it("lets nobody start while everything is paused, with a maxWait of 0 either", async () => {
  const fleet = new Fleet();
  const one = fleet.add({ rate: "100/s", burst: 10 });
  await one.pause();
  const r = await fleet.now(soft(one.acquire("x.org", { maxWait: 0 })));
  expect(r).toBeInstanceOf(Error);
});

it("lets another host have the one place over everything during an outage, once it is free", async () => {
  const fleet = new Fleet();
  const one = fleet.add({ default: { rate: "100/s", burst: 10 }, global: { concurrency: 1 } });
  await fleet.demandNow(one, 1);
  fleet.mood = "refusing";
  let a: { release(): unknown } | undefined;
  void one.acquire("a.org").then((p) => (a = p));
  await fleet.clock.advance(10_000);
  expect(a).toBeDefined();
  let got = false;
  void one.acquire("b.org").then(() => (got = true));
  await fleet.clock.advance(1000);
  expect(got).toBe(false);
  void a?.release();
  await fleet.clock.advance(60_000);
  expect(got).toBe(true);
});

it("lets another host have it, too, when a permit of the outage comes back after the return", async () => {
  const fleet = new Fleet();
  const one = fleet.add({ default: { rate: "100/s", burst: 10 }, global: { concurrency: 1 } });
  await fleet.demandNow(one, 1);
  fleet.mood = "refusing";
  let a: { release(): unknown } | undefined;
  void one.acquire("a.org").then((p) => (a = p));
  await fleet.clock.advance(10_000);
  expect(a).toBeDefined();
  fleet.mood = "well";
  await fleet.clock.advance(10_000);
  let got = false;
  void one.acquire("b.org").then(() => (got = true));
  await fleet.clock.advance(1000);
  expect(got).toBe(false);
  void a?.release();
  await fleet.clock.advance(60_000);
  expect(got).toBe(true);
});

it("passes a free place on when the lane that waited first cannot use it", async () => {
  const fleet = new Fleet();
  const one = fleet.add({ default: { rate: "1/min" }, global: { concurrency: 1 } });
  await fleet.demandNow(one, 1);
  // b.org has had its start of the minute
  await fleet.now(fleet.demand(one, 1, { key: "b.org" }));
  const a = await fleet.now(one.acquire("a.org"));
  let c = false;
  void soft(one.acquire("b.org"));
  await fleet.clock.advance(100);
  void one.acquire("c.org").then(() => (c = true));
  await fleet.clock.advance(100);
  void a.release();
  await fleet.clock.advance(5_000);
  expect(c).toBe(true);
});

it("passes a free place on when the lane that waited first has gone", async () => {
  const fleet = new Fleet();
  const one = fleet.add({ default: { rate: "100/s" }, global: { concurrency: 1 } });
  const a = await fleet.now(one.acquire("a.org"));
  let c = false;
  void soft(one.acquire("b.org"));
  await fleet.clock.advance(100);
  void one.acquire("c.org").then(() => (c = true));
  await fleet.clock.advance(100);
  void a.release();
  await one.cancelWaiting("b.org");
  await fleet.clock.advance(60_000);
  expect(c).toBe(true);
});

it("counts the starts of an outage once, though replies to their report got lost", async () => {
  const fleet = new Fleet({ roundTripMs: 20 });
  const one = fleet.add({ window: "100/h", minDelay: 0 }, { outage: "open" });
  await fleet.demandNow(one, 1);
  fleet.mood = "refusing";
  void soft(one.acquire("z.org"));
  await fleet.clock.advance(8_000);
  for (let i = 0; i < 5; i++) await (await one.acquire("x.org")).release();
  // replies lost for some looks
  const inner = fleet.store.transact;
  let lost = 0;
  (fleet.store as { transact: unknown }).transact = async (keys: readonly string[], op: { kind: string }) => {
    if (op.kind === "record" && lost < 2) {
      lost++;
      void inner.call(fleet.store, keys, op as never);
      throw new StoreError("reply lost");
    }
    return inner.call(fleet.store, keys, op as never);
  };
  fleet.mood = "well";
  await fleet.clock.advance(30_000);
  const s = await fleet.now(one.stats("x.org", { fleet: true }));
  expect(s?.window?.calls).toBe(6);
});

it("counts what is started while the report of an outage is on its way", async () => {
  const fleet = new Fleet({ roundTripMs: 100 });
  const one = fleet.add({ window: "1000/h" }, { outage: "open" });
  await fleet.demandNow(one, 1);
  fleet.mood = "refusing";
  void soft(one.acquire("z.org"));
  await fleet.clock.advance(8_000);
  let n = 1;
  fleet.mood = "well";
  for (let i = 0; i < 700; i++) {
    const p = await fleet.now(one.acquire("x.org"));
    n++;
    void p.release();
    await fleet.clock.advance(10);
  }
  await fleet.clock.advance(5000);
  const s = await fleet.now(one.stats("x.org", { fleet: true }));
  expect(s?.window?.calls).toBe(n);
});

it("hears a 429 to a start of the outage that comes after the return", async () => {
  const fleet = new Fleet();
  const one = fleet.add({ rate: "100/s", burst: 10 });
  await fleet.demandNow(one, 1);
  fleet.mood = "refusing";
  let p: { release(o: unknown): unknown } | undefined;
  void one.acquire("x.org").then((q) => (p = q as never));
  await fleet.clock.advance(10_000);
  fleet.mood = "well";
  await fleet.clock.advance(10_000);
  expect(p).toBeDefined();
  void p?.release({ status: 429, headers: { "retry-after": "600" } });
  await fleet.clock.advance(100);
  const d = await fleet.now(one.check("x.org"));
  expect(d.proceed).toBe(false);
});

it("asks nobody to wait for a store that goes away, with a maxWait of 0 either", async () => {
  const fleet = new Fleet();
  const one = fleet.add({ rate: "100/s", burst: 10 }, { outage: "open" });
  await fleet.demandNow(one, 1);
  fleet.mood = "silent";
  const r = await fleet.now(soft(one.acquire("x.org", { maxWait: 0 })));
  expect(await fleet.now(soft(one.tryAcquire("x.org")))).not.toBeInstanceOf(StoreError);
  expect(r).not.toBeInstanceOf(StoreError);
});

it("asks at most twice for each start where requests of a lane differ in cost", async () => {
  const fleet = new Fleet();
  const one = fleet.add({ rate: "100000/s", burst: 100000 });
  let n = 0;
  for (let i = 1; i <= 32; i++) void one.acquire("x.org", { cost: i }).then(() => n++);
  const { calls } = fleet;
  await fleet.clock.advance(5_000);
  expect((fleet.calls - calls) / n).toBeLessThanOrEqual(2);
});

it("resets everything whatever groups hosts", async () => {
  const fleet = new Fleet();
  const one = fleet.add({ default: { minDelay: "60s" }, groupBy: (url: URL) => `team of ${url.hostname}` });
  await fleet.now(one.acquire("https://x.org/"));
  const r = await fleet.now(soft(one.reset()));
  expect(r).toBeUndefined();
});

it("rejects an outcome that is none, and throws nothing", async () => {
  const fleet = new Fleet();
  const one = fleet.add({ minDelay: "1s" });
  const p = await fleet.now(one.acquire("x.org"));
  let sync: unknown;
  try {
    void soft(p.release("nonsense" as never));
  } catch (e) {
    sync = e;
  }
  expect(sync).toBeUndefined();
});

it("answers check where a full table has no room for a host", async () => {
  const fleet = new Fleet();
  const one = fleet.add({ rate: "1/h" }, { maxKeys: 1 });
  await fleet.now(one.acquire("a.org"));
  const r = await fleet.now(soft(one.check("b.org")));
  expect(r).not.toBeInstanceOf(Error);
});

it("asks for nobody anew because a start was recorded", async () => {
  const fleet = new Fleet();
  const one = fleet.add({ default: { rate: "1/min" }, global: { rate: "10000/s", burst: 1000 } });
  for (let i = 0; i < 50; i++) await fleet.now(one.acquire(`h${i}.org`));
  for (let i = 0; i < 50; i++) void soft(one.acquire(`h${i}.org`));
  await fleet.clock.advance(1000);
  const { calls } = fleet;
  await fleet.now(one.record("other.org", "success"));
  await fleet.clock.advance(1000);
  expect(fleet.calls - calls).toBeLessThan(5);
});
