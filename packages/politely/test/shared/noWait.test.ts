import { expect, it } from "vitest";
import type { Limits } from "../../src/policy/types.js";
import { politely } from "../../src/politely.js";
import type { SharedLimiter } from "../../src/sharedTypes.js";
import type { Clock, Limiter } from "../../src/types.js";
import { Fleet } from "./fleet.js";

const fetchOk = async (): Promise<Response> => new Response("ok");
const BUCKET = { rate: "1/s", burst: 3 } as const;

/** What becomes of each piece of work within a second: "ok" or the code of its error. */
async function ends(fleet: Fleet, work: readonly Promise<unknown>[]): Promise<string[]> {
  const said = work.map((each) =>
    each.then(
      () => "ok",
      (error: { code: string }) => error.code,
    ),
  );
  return fleet.now(Promise.all(said));
}

/** The same limits with a store, and without. */
function both(limits: Limits): [Fleet, SharedLimiter, Limiter] {
  const fleet = new Fleet({ roundTripMs: 20 });
  const policy = { default: limits, http: { robots: false } };
  const shared = fleet.add(policy, { fetch: fetchOk });
  return [fleet, shared, politely(policy, { clock: fleet.clock, fetch: fetchOk })];
}

it("starts at an idle host by every verb when the policy lets nobody wait, and refuses whoever would have to", async () => {
  const [fleet, shared, here] = both({ ...BUCKET, maxWait: 0 });
  for (const limiter of [shared, here]) {
    const wrapped = limiter.wrap("x.org", () => 1);
    const verbs = [limiter.acquire("x.org"), wrapped(), limiter.fetch("https://x.org/"), limiter.run("x.org", () => 1)];
    expect(await ends(fleet, verbs)).toEqual(["ok", "ok", "ok", "POLITELY_DEADLINE"]);
  }
});

it("starts at an idle host by every verb with a maxWait of 0 of its own", async () => {
  const [fleet, shared, here] = both(BUCKET);
  for (const limiter of [shared, here]) {
    const zero = { maxWait: 0 };
    const verbs = [
      limiter.acquire("x.org", zero),
      limiter.run("x.org", () => 1, zero),
      limiter.fetch("https://x.org/", { politely: zero }),
      limiter.run("x.org", () => 1, zero),
    ];
    expect(await ends(fleet, verbs)).toEqual(["ok", "ok", "ok", "POLITELY_DEADLINE"]);
  }
});

it("says why nobody may wait, and asks the store once", async () => {
  const fleet = new Fleet();
  const limiter = fleet.add({ rate: "1/4s" });
  const events: string[] = [];
  limiter.subscribe((event) => {
    if (event.type === "refuse") events.push(event.code);
  });
  await fleet.demandNow(limiter, 1);
  const { calls } = fleet;
  const error = await fleet.now(limiter.run("x.org", () => 1, { maxWait: 0 }).catch((reason: unknown) => reason));
  expect(error).toMatchObject({ code: "POLITELY_DEADLINE", reason: expect.stringContaining("rate 1/4s") as string });
  expect((error as { waitMs: number }).waitMs).toBeGreaterThan(3_000);
  expect(fleet.calls - calls).toBe(1);
  expect(events).toEqual(["POLITELY_DEADLINE"]);
  expect(await fleet.now(limiter.stats("x.org"))).toMatchObject({ asked: 2, granted: 1, refused: 1, waiting: 0 });
});

it.each([
  { maxQueue: 0, burst: 1, expected: "ok full full full" },
  { maxQueue: 0, burst: 3, expected: "ok ok ok full" },
  { maxQueue: 1, burst: 3, expected: "ok ok ok waits" },
  { maxQueue: 1, burst: 1, expected: "ok waits full full" },
  { maxQueue: 2, burst: 1, expected: "ok waits waits full" },
])("counts those who have to wait: maxQueue $maxQueue, burst $burst, four at once", async (row) => {
  const { maxQueue, burst, expected } = row;
  const [fleet, shared, here] = both({ rate: "1/min", burst, maxQueue });
  for (const limiter of [shared, here]) {
    const said = ["waits", "waits", "waits", "waits"];
    said.forEach((_, index) => {
      limiter.acquire("x.org").then(
        () => (said[index] = "ok"),
        (error: { code: string }) => (said[index] = error.code === "POLITELY_QUEUE_FULL" ? "full" : error.code),
      );
    });
    await fleet.clock.advance(500);
    expect(said.join(" ")).toBe(expected);
    if (!expected.endsWith("full")) continue;
    // Whoever comes later to a full queue is refused as well.
    expect(await ends(fleet, [limiter.acquire("x.org")])).toEqual(["POLITELY_QUEUE_FULL"]);
  }
});

it("refuses nobody who waited before the policy allowed fewer to", async () => {
  const fleet = new Fleet();
  const limiter = fleet.add({ rate: "1/min" });
  const waiting = Array.from({ length: 4 }, () => limiter.acquire("x.org").then(() => "ok", String));
  await fleet.clock.advance(100);
  await fleet.now(limiter.configure({ default: { rate: "1/s", maxQueue: 1 } }));
  await fleet.clock.advance(100);
  expect(await ends(fleet, [limiter.acquire("x.org")])).toEqual(["POLITELY_QUEUE_FULL"]);
  await fleet.clock.advance(200_000);
  expect(await Promise.all(waiting)).toEqual(["ok", "ok", "ok", "ok"]);
});

it("says that an answer is waited for, however long the process takes to say so", async () => {
  const fleet = new Fleet();
  let readings = 0;
  const { clock } = fleet;
  // A busy process: between any two looks at the clock some time has passed.
  const busy: Clock = {
    now: () => clock.now() + (readings++ * 3) / 1000,
    wall: () => clock.wall(),
    setTimer: (atMs, fn) => clock.setTimer(atMs, fn),
    clearTimer: (timer) => clock.clearTimer(timer),
  };
  const limiter = fleet.add({ concurrency: 1 }, { clock: busy });
  await fleet.now(limiter.acquire("x.org"));
  const refused = fleet.now(limiter.acquire("x.org", { maxWait: 0 }));
  await expect(refused).rejects.toMatchObject({
    waitMs: 0,
    reason: "x.org: concurrency 1, all in flight, until an answer comes",
  });
});

it("gives back what the store granted before another policy came into force", async () => {
  const fleet = new Fleet({ roundTripMs: 20 });
  const limits: Limits = { rate: "1/s", burst: 5 };
  const limiter = fleet.add({ default: limits });
  const asked = limiter.tryAcquire("x.org", { cost: { host: 2 } });
  await limiter.configure({ default: limits, global: limits });
  expect(await fleet.now(asked)).toBeUndefined();
  await fleet.clock.advance(100);
  const stats = await fleet.now(limiter.stats("x.org"));
  expect(stats).toMatchObject({ tokens: 5, inFlight: 0, refused: 1 });
});
