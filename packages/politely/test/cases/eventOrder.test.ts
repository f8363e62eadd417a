import { describe, expect, it } from "vitest";
import type { Limits } from "../../src/index.js";
import { granted, only, rig, track } from "../verbs/support.js";

describe("events come after what caused them", () => {
  it("a change of policy is told before the starts it allows", async () => {
    const { limiter, events } = rig({ default: { rate: "1/10s" } });
    granted(limiter.tryAcquire("x.example"));
    void track(limiter.acquire("x.example"));
    limiter.configure({ default: {} });
    expect(events.map(({ type }) => type)).toEqual(["grant", "wait", "configure", "grant"]);
  });

  it("a change of policy is told before those it refuses", async () => {
    const { limiter, events } = rig({ default: { rate: "1/10s" } });
    granted(limiter.tryAcquire("x.example"));
    void track(limiter.acquire("x.example", { maxWait: "30s" }));
    limiter.configure({ default: { rate: "1/h" } });
    expect(events.map(({ type }) => type)).toEqual(["grant", "wait", "configure", "refuse"]);
  });

  it.each([["x.example"], [undefined]])("a pause is told before those it refuses: %s", (target) => {
    const { limiter, events } = rig({ default: { rate: "1/10s" } });
    granted(limiter.tryAcquire("x.example"));
    void track(limiter.acquire("x.example", { maxWait: "30s" }));
    limiter.pause(target);
    expect(events.map(({ type }) => type)).toEqual(["grant", "wait", "pause", "refuse"]);
  });

  it("a recorded start is told before the cooldown that its answer begins, and before those that refuses", () => {
    const { limiter, events } = rig({ default: { rate: "1/s" } });
    granted(limiter.tryAcquire("x.example"));
    void track(limiter.acquire("x.example", { maxWait: "30s" }));
    limiter.record("x.example", { status: 429 });
    expect(events.slice(2).map(({ type }) => type)).toEqual(["grant", "cooldown", "refuse"]);
  });

  it("what a listener does in between is told in its turn", () => {
    const { limiter, events } = rig({ default: { rate: "1/10s" } });
    granted(limiter.tryAcquire("x.example"));
    void track(limiter.acquire("x.example"));
    limiter.subscribe(({ type }) => {
      if (type === "configure") limiter.pause("y.example");
    });
    limiter.configure({ default: {} });
    expect(events.slice(2).map(({ type }) => type)).toEqual(["configure", "grant", "pause"]);
  });
});

describe("a pause and its end", () => {
  const policy = {
    default: {},
    hosts: { "x.example": { intents: { search: {} } } },
    scopes: { "p:*": {} },
  } as const;

  it.each([
    [{ host: "x.example", scopes: ["p:1"] }, ["p:1"]],
    [{ host: "x.example", scopes: ["p:1", "p:2"] }, ["p:1", "p:2"]],
    [{ host: "x.example", intent: "search" }, ["x.example (search)"]],
    [{ host: "x.example", intent: "unknown" }, ["x.example"]],
    ["x.example", ["x.example"]],
    [undefined, ["*"]],
  ] as const)("name what is held: %o", (target, keys) => {
    const { limiter, events } = rig(policy);
    const given =
      typeof target === "object" ? { ...target, ...("scopes" in target && { scopes: [...target.scopes] }) } : target;
    limiter.pause(given, "10s");
    limiter.resume(given);
    expect(only(events, "pause").map(({ key }) => key)).toEqual(keys);
    expect(only(events, "resume").map(({ key }) => key)).toEqual(keys);
  });
});

describe("a permit that is held too long", () => {
  const one = { concurrency: 1, maxHold: "1s" } as const;
  const target = { host: "x.example", scopes: ["p"] };
  const lapsedOf = (events: ReturnType<typeof rig>["events"]) => [only(events, "expire"), only(events, "warn")];

  it("is told once, however many limits followed it", async () => {
    const { clock, limiter, events } = rig({ default: one, global: one, scopes: { p: one } });
    granted(limiter.tryAcquire(target));
    await clock.advance(2_000);
    expect(limiter.check(target).proceed).toBe(true);
    await clock.settle();
    expect(lapsedOf(events).map((each) => each.map(({ key }) => key))).toEqual([["x.example"], ["x.example"]]);
  });

  it("is told once for each of two, also of one instant", async () => {
    const two: Limits = { concurrency: 2, maxHold: "1s" };
    const { clock, limiter, events } = rig({ default: two, global: two });
    granted(limiter.tryAcquire("x.example"));
    granted(limiter.tryAcquire("x.example"));
    await clock.advance(2_000);
    limiter.stats();
    await clock.settle();
    expect(lapsedOf(events).map(({ length }) => length)).toEqual([2, 2]);
  });

  it("is told when its first place is free again, and not when the last is", async () => {
    const { clock, limiter, events } = rig({ default: { ...one, maxHold: "10s" }, scopes: { p: one } });
    granted(limiter.tryAcquire(target));
    const next = track(limiter.acquire({ host: "y.example", scopes: ["p"] }));
    await clock.advance(1_000);
    expect(next.state).toBe("done");
    expect(only(events, "expire")).toMatchObject([{ key: "p", atMs: 1_000, what: "permit" }]);
    next.value?.release();
    await clock.advance(20_000);
    expect(limiter.stats("x.example")).toMatchObject({ lapsed: 1, inFlight: 0 });
    expect(lapsedOf(events).map(({ length }) => length)).toEqual([1, 1]);
  });
});
