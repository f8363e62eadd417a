import { describe, expect, it } from "vitest";
import type { Outcome, Permit } from "../../src/index.js";
import { DeadlineError } from "../../src/index.js";
import { VirtualClock } from "../../src/testing/index.js";
import { failure, granted, keyRig, many, only, rig, startsOf, track } from "../verbs/support.js";

describe("answers that say stop", () => {
  it("a host that says stop is left alone: nothing queued goes during the cooldown (crawlee 4039)", async () => {
    const { clock, limiter } = rig({ default: { rate: "200/s", burst: 10 } });
    let sent = 0;
    const pages = many(649, () => limiter.run("busy.org", () => ({ status: sent++ === 0 ? 429 : 200 })));
    await clock.advance(4_000);
    // The ten of the first burst were on their way when the answer came.
    expect(sent).toBeLessThanOrEqual(10);
    await clock.advance(55_999);
    expect(sent).toBeLessThanOrEqual(10);
    await clock.advance(60_000);
    await Promise.all(pages);
    expect(sent).toBe(649);
  });

  it("seven 429s of requests in flight together are one incident: the step rises once (crawlee-python 2125)", async () => {
    const { clock, limiter, events } = keyRig({ concurrency: 10, cooldown: ["10s", "20s", "40s"] });
    const permits = await Promise.all(many(7, () => limiter.acquire()));
    for (const permit of permits) {
      permit.release("rate_limited");
      await clock.advance(100);
    }
    expect(new Set(only(events, "cooldown").map((event) => event.step)).size).toBe(1);
    // The last of the seven came at 600 ms, so the host is left alone until 10,600.
    expect(limiter.stats()).toMatchObject({ cooldownMs: 9_900, throttledRequests: 7 });
    await clock.advance(9_900);
    granted(limiter.tryAcquire()).release("rate_limited");
    expect(limiter.stats().cooldownMs).toBe(20_000);
  });

  it.each([
    ["0", { kind: "rate_limited", retryAfterMs: 0 }],
    ["a negative number", { kind: "rate_limited", retryAfterMs: -5 }],
    ["not a number", { kind: "rate_limited", retryAfterMs: Number.NaN }],
    ["a header of 0", { status: 429, headers: { "retry-after": "0" } }],
    ["a header below 0", { status: 429, headers: { "retry-after": "-1" } }],
    ["a header of nonsense", { status: 429, headers: { "retry-after": "soon" } }],
    ["an empty header", { status: 429, headers: { "retry-after": "" } }],
  ] as readonly (readonly [string, Outcome])[])(
    "a Retry-After of %s counts as absent and does not spin (crawlee-python 2125)",
    async (_name, outcome) => {
      const { limiter } = keyRig({ minDelay: 1 });
      (await limiter.acquire()).release(outcome);
      expect(limiter.check()).toMatchObject({ proceed: false, waitMs: 60_000 });
    },
  );

  it("pacing and cooldown are two clocks: a pace that goes on does not hide the 429 (crawlee-python 2125)", async () => {
    const { clock, limiter } = keyRig({ minDelay: 100 });
    const first = await limiter.acquire();
    await clock.advance(100);
    const second = await limiter.acquire();
    first.release("rate_limited");
    second.release("success");
    await clock.advance(100);
    expect(limiter.stats().cooldownMs).toBe(59_900);
    expect(limiter.tryAcquire()).toBeUndefined();
  });

  it("a maxWait shorter than the cooldown fails clearly instead of going early (undici, ky, Crawlee 4)", async () => {
    const { clock, limiter } = keyRig({ minDelay: 10 });
    (await limiter.acquire()).release({ kind: "rate_limited", retryAfterMs: 120_000 });
    const error = await failure(limiter.acquire({ maxWait: "30s" }));
    expect(error).toBeInstanceOf(DeadlineError);
    expect(error).toMatchObject({ waitMs: 120_000 });
    expect(String((error as DeadlineError).reason)).toMatch(/cooldown|429|rate_limited|Retry-After|held|stay away/i);
    await clock.advance(30_000);
    expect(limiter.stats()).toMatchObject({ totalRequests: 1, refused: 1 });
  });

  it("a cooldown that lands while others wait refuses those that can no longer make it, at once (undici, ky, Crawlee 4)", async () => {
    const { clock, limiter } = keyRig({ minDelay: "1s" });
    const first = await limiter.acquire();
    const patient = track(limiter.acquire());
    const hasty = track(limiter.acquire({ maxWait: "30s" }));
    await clock.advance(500);
    first.release("rate_limited");
    await clock.settle();
    expect(hasty.error).toBeInstanceOf(DeadlineError);
    expect(patient.state).toBe("pending");
    expect(limiter.stats()).toMatchObject({ refused: 1, expired: 0, waiting: 1 });
    await clock.advance(60_000);
    expect(patient.value?.startedAtMs).toBe(60_500);
  });

  it.each([
    ["run without a retry", { status: 429 }],
    ["run with a Response", new Response(null, { status: 429 })],
  ])("the signal is not lost when nobody retries: %s holds the host (crawlee-python 2158)", async (_name, answer) => {
    const { limiter } = keyRig({ minDelay: 10 });
    await limiter.run(() => answer);
    expect(limiter.stats()).toMatchObject({ cooldownMs: 60_000, throttledRequests: 1 });
  });

  it("an error thrown with a status of 429 holds the host too (crawlee-python 2158)", async () => {
    const { limiter } = keyRig({ minDelay: 10 });
    await failure(limiter.run(() => Promise.reject(Object.assign(new Error("too many"), { status: 429 }))));
    expect(limiter.stats().cooldownMs).toBe(60_000);
  });

  it("a cooldown holds no concurrency place: other hosts use them all meanwhile (crawlee-python 2176)", async () => {
    const { clock, limiter } = rig({ default: { minDelay: 10 }, global: { concurrency: 2 } });
    (await limiter.acquire("busy.org")).release("rate_limited");
    const held = many(5, () => track(limiter.acquire("busy.org")));
    await clock.advance(1_000);
    expect(limiter.stats("busy.org")).toMatchObject({ inFlight: 0, waiting: 5 });
    const others = [granted(limiter.tryAcquire("a.org")), granted(limiter.tryAcquire("b.org"))];
    expect(held.every((waiter) => waiter.state === "pending")).toBe(true);
    for (const permit of others) permit.release("success");
  });

  it("a stale answer does not overwrite a newer one: a shorter hold never shortens a longer", async () => {
    const { clock, limiter } = keyRig({ concurrency: 3 });
    const [old, newer] = await Promise.all([limiter.acquire(), limiter.acquire()]);
    newer.release({ kind: "rate_limited", retryAfterMs: 90_000 });
    await clock.advance(1_000);
    old.release({ kind: "rate_limited", retryAfterMs: 5_000 });
    expect(limiter.stats().cooldownMs).toBe(89_000);
  });

  it("a success of an older request neither ends a running cooldown nor resets the step", async () => {
    const { clock, limiter } = keyRig({ concurrency: 3, cooldown: ["10s", "20s"] });
    const [old, newer] = await Promise.all([limiter.acquire(), limiter.acquire()]);
    newer.release("rate_limited");
    old.release("success");
    expect(limiter.stats().cooldownMs).toBe(10_000);
    await clock.advance(10_000);
    granted(limiter.tryAcquire()).release("rate_limited");
    expect(limiter.stats().cooldownMs).toBe(20_000);
  });
});

describe("the probe after a cooldown", () => {
  async function held(): Promise<ReturnType<typeof keyRig> & { waiters: Promise<Permit>[] }> {
    const made = keyRig({ minDelay: 100 });
    (await made.limiter.acquire()).release({ kind: "rate_limited", retryAfterMs: 10_000 });
    return { ...made, waiters: many(4, () => made.limiter.acquire()) };
  }

  it("goes alone, and the rest follow at its answer", async () => {
    const { clock, limiter, events, waiters } = await held();
    await clock.advance(12_000);
    expect(limiter.stats()).toMatchObject({ inFlight: 1, waiting: 3 });
    expect(only(events, "probe")).toHaveLength(1);
    (await waiters[0]).release("success");
    await clock.advance(1_000);
    expect(await startsOf(waiters)).toEqual([10_000, 12_000, 12_100, 12_200]);
  });

  it("returned as unused makes the next one the probe", async () => {
    const { clock, limiter, waiters } = await held();
    await clock.advance(11_000);
    (await waiters[0]).release("unused");
    await clock.advance(1_000);
    expect(limiter.stats()).toMatchObject({ waiting: 2 });
    expect((await waiters[1]).startedAtMs).toBe(11_000);
  });

  it("that is never answered lets the rest go after 5 s", async () => {
    const { clock, waiters } = await held();
    await clock.advance(20_000);
    expect(await startsOf(waiters)).toEqual([10_000, 15_000, 15_100, 15_200]);
  });

  it("that is never answered lets the rest go after one gap where that is longer than 5 s", async () => {
    const { clock, limiter } = keyRig({ minDelay: "8s" });
    (await limiter.acquire()).release({ kind: "rate_limited", retryAfterMs: 10_000 });
    const waiters = many(3, () => limiter.acquire());
    await clock.advance(30_000);
    expect(await startsOf(waiters)).toEqual([10_000, 18_000, 26_000]);
  });

  it("that is told to stop again holds the rest for the next step", async () => {
    const { clock, limiter } = keyRig({ minDelay: 100, cooldown: ["10s", "20s"] });
    (await limiter.acquire()).release("rate_limited");
    const waiters = many(2, () => limiter.acquire());
    await clock.advance(10_500);
    (await waiters[0]).release("rate_limited");
    await clock.advance(20_000);
    expect((await waiters[1]).startedAtMs).toBe(30_500);
  });
});

describe("what an answer means", () => {
  const retryAfter = { "Retry-After": "7" };
  it.each([
    [429, {}, 60_000],
    [418, {}, 60_000],
    [420, {}, 60_000],
    [509, {}, 60_000],
    [529, {}, 60_000],
    [503, retryAfter, 7_000],
    [403, retryAfter, 7_000],
    [503, {}, 5_000],
    [500, {}, 5_000],
    [502, {}, 5_000],
    [408, {}, 5_000],
    [200, {}, 0],
    [204, {}, 0],
    [301, {}, 0],
    [304, {}, 0],
    [400, {}, 0],
    [401, {}, 0],
    [403, {}, 0],
    [404, {}, 0],
    [410, {}, 0],
  ])("a status of %i with the headers %j holds the host for %i ms", async (status, headers, holdMs) => {
    const { limiter } = keyRig({ concurrency: 1 });
    (await limiter.acquire()).release({ status, headers });
    expect(limiter.stats()).toMatchObject({ cooldownMs: holdMs, inFlight: 0 });
  });

  it("a 403 that says nothing remains is a refusal for asking too often", async () => {
    const { limiter } = keyRig({ concurrency: 1 });
    (await limiter.acquire()).release({ status: 403, headers: { "X-RateLimit-Remaining": "0" } });
    expect(limiter.stats()).toMatchObject({ cooldownMs: 60_000, throttledRequests: 1 });
  });

  it("a Retry-After may be a date, read against the wall clock", async () => {
    const wallMs = Date.UTC(2026, 0, 15, 12, 0, 0);
    const { limiter } = keyRig({ minDelay: 10 }, { clock: new VirtualClock({ wallMs }) });
    const headers = new Headers({ "retry-after": "Thu, 15 Jan 2026 12:01:30 GMT" });
    (await limiter.acquire()).release({ status: 429, headers });
    expect(limiter.stats().cooldownMs).toBe(90_000);
  });

  it("a neutral answer neither resets the step nor raises it", async () => {
    const { clock, limiter } = keyRig({ cooldown: ["10s", "20s", "40s"] });
    limiter.record("rate_limited");
    await clock.advance(10_000);
    limiter.record({ status: 404 });
    await clock.advance(1_000);
    limiter.record("rate_limited");
    expect(limiter.stats().cooldownMs).toBe(20_000);
  });

  it("an outcome that names a scope holds that scope instead of the host", async () => {
    const { limiter } = rig({ default: { minDelay: 10 }, scopes: { "proxy:*": { minDelay: 1 } } });
    const target = { host: "a.org", scopes: ["proxy:berlin"] };
    (await limiter.acquire(target)).release({ kind: "rate_limited", retryAfterMs: 9_000, scope: "proxy:berlin" });
    expect(limiter.stats("a.org")?.cooldownMs).toBe(0);
    expect(limiter.check({ host: "b.org", scopes: ["proxy:berlin"] }).waitMs).toBe(9_000);
    expect(limiter.check({ host: "b.org", scopes: ["proxy:paris"] }).waitMs).toBe(0);
    expect(limiter.check("a.org").waitMs).toBeLessThanOrEqual(10);
  });
});
