import { describe, expect, it } from "vitest";
import type { Limits, PolicyInput } from "../../src/index.js";
import { granted, keyRig, many, rig, track } from "../verbs/support.js";

// What a hostile review of the second design found: permits held for longer than maxHold, and changes while somebody is in flight.

const all = (limits: Limits): PolicyInput => ({ default: limits });
const host = "x.example";

describe("a permit that is released after its key was forgotten", () => {
  it("changes nothing, and throws nothing, whoever has the row by now", async () => {
    const { clock, limiter } = rig(all({ minDelay: "100ms", maxHold: "1s" }), { keepStats: 0 });
    const live = granted(limiter.tryAcquire("live.example"));
    const lost = ["a", "b", "c", "d"].map((name) => granted(limiter.tryAcquire(`${name}.example`)));
    await clock.advance(900);
    live.release();
    granted(limiter.tryAcquire("live.example"));
    await clock.advance(200);
    limiter.stats();
    for (const permit of lost) permit.release();
    expect(limiter.stats()).toMatchObject([{ granted: 6, lapsed: 4, inFlight: 1, released: 1 }]);
  });

  it("frees no place of another key that has its row, with another maxHold", async () => {
    const { clock, limiter } = rig(
      { hosts: { "a.example": { minDelay: 1, maxHold: "1s" }, "b.example": { minDelay: 1 } } },
      { keepStats: 0 },
    );
    const lost = granted(limiter.tryAcquire("a.example"));
    await clock.advance(2_000);
    limiter.stats();
    const flying = granted(limiter.tryAcquire("b.example"));
    lost.release();
    expect(limiter.stats()).toMatchObject([{ inFlight: 1, lapsed: 1 }]);
    flying.release();
    await limiter.idle();
  });

  it("gives nothing back of a start made since under the same name", async () => {
    const { clock, limiter } = rig(all({ minDelay: "1s", maxHold: "1s" }), { keepStats: 0 });
    const lost = granted(limiter.tryAcquire(host));
    await clock.advance(5_000);
    limiter.stats();
    granted(limiter.tryAcquire(host));
    lost.release("unused");
    expect(limiter.tryAcquire(host)).toBeUndefined();
    expect(limiter.stats()).toMatchObject([{ inFlight: 1 }]);
  });
});

describe("places held for longer than maxHold", () => {
  it("are free again, and told of, also where nobody asks for that key any more", async () => {
    const { clock, limiter, events } = rig(all({ concurrency: 1, maxHold: "1s" }), { maxKeys: 2 });
    granted(limiter.tryAcquire("a.example"));
    granted(limiter.tryAcquire("b.example"));
    await clock.advance(3_600_000);
    granted(limiter.tryAcquire("c.example"));
    expect(events.filter(({ type }) => type === "expire")).toHaveLength(2);
  });

  it("are those of the policy in force when somebody waits for rest", async () => {
    const { clock, limiter } = rig(all({ concurrency: 1, maxHold: "1s" }));
    const names = many(100, (index) => `h${index}.example`);
    for (const name of names) granted(limiter.tryAcquire(name));
    track(limiter.idle());
    limiter.configure(all({ concurrency: 1, maxHold: "1h" }));
    await clock.advance(1_500);
    expect(names.filter((name) => limiter.tryAcquire(name) !== undefined)).toEqual([]);
  });

  it("may come back at the very instant at which they lapse, with somebody in line and somebody waiting for rest", async () => {
    const { clock, limiter } = rig(all({ concurrency: 1, maxHold: 700 }));
    const lost = granted(limiter.tryAcquire(host));
    clock.setTimer(clock.now() + 700, () => lost.release());
    const next = limiter.acquire(host);
    const rest = limiter.idle();
    await clock.advance(700);
    (await next).release();
    await rest;
  });

  it("end the wait of idle, also when they were taken after it began, or maxHold became shorter", async () => {
    const { clock, limiter } = rig(all({ rate: "1/s", maxHold: "10s" }));
    granted(limiter.tryAcquire(host)).release();
    track(limiter.acquire(host));
    const idle = track(limiter.idle());
    await clock.advance(20_000);
    expect(idle.state).toBe("done");
    granted(limiter.tryAcquire(host));
    limiter.configure(all({ rate: "1/s", maxHold: "1h" }));
    const later = track(limiter.idle());
    await clock.advance(1_000);
    limiter.configure(all({ rate: "1/s", maxHold: "1s" }));
    await clock.advance(60_000);
    expect(later.state).toBe("done");
  });
});

describe("statistics reset after starts were lost", () => {
  it("balance", async () => {
    const { clock, limiter } = rig(all({ minDelay: 1, maxHold: "1s" }));
    granted(limiter.tryAcquire(host));
    await clock.advance(2_000);
    limiter.reset(host, "stats");
    granted(limiter.tryAcquire(host));
    expect(limiter.stats(host)).toMatchObject({ granted: 1, released: 0, lapsed: 0, inFlight: 1 });
  });
});

describe("a change of policy", () => {
  it("counts every start of an instant at which one still waits for its answer", () => {
    const { limiter } = keyRig({ rate: "5/min", burst: 5, countFrom: "answer" });
    const permits = many(5, () => granted(limiter.tryAcquire()));
    for (const permit of permits.slice(1)) permit.release();
    limiter.configure({ window: "5/min" });
    expect(limiter.tryAcquire()).toBeUndefined();
  });

  it("has room for the new intents of a host that it names, however few keys there may be, and loses nobody", async () => {
    const limits: Limits = { rate: "1/s" };
    const { clock, limiter } = rig({ hosts: { "a.example": limits } }, { maxKeys: 1 });
    granted(limiter.tryAcquire("a.example")).release();
    const intents = ["x", "y", "z"];
    const waits = intents.map((intent) => track(limiter.acquire({ host: "a.example", intent })));
    limiter.configure({
      hosts: { "a.example": { ...limits, intents: Object.fromEntries(intents.map((name) => [name, limits])) } },
    });
    await clock.advance(100_000);
    expect(waits.map(({ state }) => state)).not.toContain("pending");
    expect(waits.filter(({ error }) => error !== undefined)).toEqual([]);
  });

  it("remembers a quota that is away for a while", async () => {
    const quota: Limits = { quota: { count: 10, per: "day" } };
    const { clock, limiter } = rig(all(quota));
    many(10, () => granted(limiter.tryAcquire(host)).release());
    limiter.configure(all({ minDelay: 1 }));
    await clock.advance(10);
    limiter.stats();
    limiter.configure(all(quota));
    expect(limiter.tryAcquire(host)).toBeUndefined();
  });

  it("lets a longer window know what a coarse one has seen", async () => {
    const { clock, limiter } = rig(all({ window: ["5000/5s", "3/s"] }));
    for (const afterMs of [0, 0, 2_000, 0, 0]) {
      await clock.advance(afterMs);
      granted(limiter.tryAcquire(host)).release();
    }
    limiter.configure(all({ window: ["5000/5s", "6/3s"] }));
    granted(limiter.tryAcquire(host));
    expect(limiter.tryAcquire(host)).toBeUndefined();
  });
});

describe("a full table", () => {
  it("has room again when the pause of a host ends, and when a permit was held for maxHold", async () => {
    const { clock, limiter } = rig(all({ minDelay: "1h", maxHold: "10s" }), { maxKeys: 20 });
    limiter.pause("h0.example");
    for (let index = 1; index < 20; index++) granted(limiter.tryAcquire(`h${index}.example`)).release();
    expect(() => limiter.tryAcquire("new.example")).toThrow(/maxKeys/);
    limiter.resume("h0.example");
    granted(limiter.tryAcquire("new.example"));
    expect(() => limiter.tryAcquire("newer.example")).toThrow(/maxKeys/);
    await clock.advance(3_600_000);
    granted(limiter.tryAcquire("newer.example"));
  });
});
