import { describe, expect, it } from "vitest";
import type { Limits } from "../../src/policy/types.js";
import type { Store } from "../../src/stores/store.js";
import type { Outcome } from "../../src/types.js";
import { Fleet } from "./fleet.js";

const tooMany = { status: 429, headers: { "retry-after": "10" } };

/** How long after the report of an answer another process starts, when its request is over 8 s later. */
async function heldMs(limits: Limits, told: Outcome, ended: Outcome): Promise<number> {
  const fleet = new Fleet();
  const [one, other] = [fleet.add({ rate: "100/s", ...limits }), fleet.add({ rate: "100/s", ...limits })];
  const permit = await fleet.now(one.acquire("x.org"));
  const heardMs = fleet.clock.now();
  void permit.report(told);
  await fleet.clock.advance(8_000);
  void permit.release(ended);
  void fleet.demand(other, 1);
  await fleet.clock.advance(100_000);
  return fleet.starts[0].atMs - heardMs;
}

describe.each([{}, { concurrency: 5 }])("an answer that is reported and then given to release, with %o,", (limits) => {
  it.each([
    ["a status with headers", tooMany],
    ["a kind with a Retry-After", { kind: "rate_limited", retryAfterMs: 10_000 }],
  ] as const)("holds its host from the report on: %s", async (_, outcome) => {
    const ms = await heldMs(limits, outcome, outcome);
    expect(ms).toBeGreaterThanOrEqual(10_000);
    expect(ms).toBeLessThan(10_100);
  });

  it("counts anew where it is another kind of answer, or asks for a longer wait", async () => {
    const ms = await heldMs(limits, tooMany, { ...tooMany, headers: { "retry-after": "11" } });
    expect(ms).toBeGreaterThanOrEqual(19_000);
    expect(await heldMs(limits, tooMany, { kind: "timeout", retryAfterMs: 20_000 })).toBeGreaterThanOrEqual(28_000);
  });

  it("is one 429 of the fleet", async () => {
    const fleet = new Fleet();
    const one = fleet.add({ rate: "100/s", ...limits });
    await fleet.now(
      one.run("x.org", (permit) => {
        void permit.report(tooMany);
        return tooMany;
      }),
    );
    await fleet.clock.advance(100);
    expect((await fleet.now(one.stats("x.org", { fleet: true })))?.throttledRequests).toBe(1);
  });
});

it("a budget that is reported and then released with is told to the store once", async () => {
  const fleet = new Fleet();
  const one = fleet.add({ rate: "100/s" });
  const headers = { "x-ratelimit-remaining": "50", "x-ratelimit-reset": "60" };
  const permit = await fleet.now(one.acquire("x.org"));
  await fleet.now(permit.report({ status: 200, headers }));
  const { calls } = fleet;
  await fleet.now(permit.release({ status: 200, headers }));
  expect(fleet.calls).toBe(calls);
});

it("a 429 reported before its place lapsed, and given to release after, holds from the report on", async () => {
  expect(await heldMs({ concurrency: 1, maxHold: "5s" }, tooMany, tooMany)).toBeLessThan(10_500);
});

it("a 429 reported and given to release while the store is away holds from the report on", async () => {
  const fleet = new Fleet();
  const one = fleet.add({ rate: "100/s" });
  const permit = await fleet.now(one.acquire("x.org"));
  fleet.mood = "refusing";
  void one.check("y.org").catch(() => undefined);
  await fleet.clock.advance(8_000);
  const heardMs = fleet.clock.now();
  void permit.report(tooMany);
  await fleet.clock.advance(5_000);
  void permit.release(tooMany);
  fleet.mood = "well";
  await fleet.clock.advance(4_500);
  void fleet.demand(one, 1);
  await fleet.clock.advance(100_000);
  expect(fleet.starts[0].atMs - heardMs).toBeGreaterThanOrEqual(10_000);
  expect(fleet.starts[0].atMs - heardMs).toBeLessThan(11_000);
});

it("a probe that reports a neutral answer and ends with it lets the rest follow", async () => {
  const fleet = new Fleet();
  const one = fleet.add({ rate: "100/s", concurrency: 5, cooldown: "10s" });
  await fleet.now(one.run("x.org", () => ({ status: 429 })));
  await fleet.clock.advance(10_000);
  const probe = await fleet.now(one.acquire("x.org"));
  void probe.report({ status: 404 });
  await fleet.clock.advance(100);
  const beganMs = fleet.clock.now();
  void probe.release({ status: 404 });
  void fleet.demand(one, 1);
  await fleet.clock.advance(20_000);
  expect(fleet.starts[0].atMs - beganMs).toBeLessThan(1_000);
});

it.each([
  ["the same answer", tooMany],
  ["nothing", undefined],
])("a place is free once the 429 reported before is known, with %s at the release", async (_, ended) => {
  const fleet = new Fleet();
  // The report is long on its way, as on a connection that hangs.
  const slow: Store = {
    ...fleet.store,
    transact: async (keys, operation) => {
      if (operation.kind === "settle" && !operation.isOver)
        await new Promise<void>((resolve) => void fleet.clock.setTimer(fleet.clock.now() + 800, resolve));
      return fleet.store.transact(keys, operation);
    },
  };
  const [one, other] = [fleet.add({ concurrency: 1 }, { store: slow }), fleet.add({ concurrency: 1 })];
  const permit = await fleet.now(one.acquire("x.org"));
  const heardMs = fleet.clock.now();
  void permit.report(tooMany);
  void permit.release(ended);
  void fleet.demand(other, 1);
  await fleet.clock.advance(60_000);
  expect(fleet.starts[0].atMs - heardMs).toBeGreaterThanOrEqual(10_000);
});
