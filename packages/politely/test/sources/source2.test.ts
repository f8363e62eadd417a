import { describe, expect, it } from "vitest";
import type { Limiter } from "../../src/index.js";
import { many, rig, startsOf } from "../verbs/support.js";

const cooldownOf = (limiter: Limiter, host: string): number => limiter.stats(host)?.cooldownMs ?? Number.NaN;

/** Fails `times` times in a row, each time as soon as the hold is over, and tells how long each hold was. */
async function holdsAfterFailures(
  { limiter, clock }: ReturnType<typeof rig>,
  host: string,
  times: number,
): Promise<number[]> {
  const holds: number[] = [];
  for (let index = 0; index < times; index += 1) {
    limiter.record(host, "server_error");
    holds.push(cooldownOf(limiter, host));
    await clock.advance(Math.max(1, holds[index]));
  }
  return holds;
}

const table = [
  { host: "finance.yahoo.com", minDelayMs: 2_000, perMinute: 3, holds: [5_000, 10_000, 20_000] },
  { host: "reuters.com", minDelayMs: 3_000, perMinute: 2, holds: [5_000, 10_000, 20_000] },
  { host: "acme.company-ir", minDelayMs: 1_000, perMinute: 5, holds: [5_000, 10_000, 15_000] },
  { host: "eia.gov", minDelayMs: 1_000, perMinute: 10, holds: [0, 0, 0] },
  { host: "anything.example", minDelayMs: 1_000, perMinute: 5, holds: [5_000, 10_000, 15_000] },
];

describe("source 2, enforce-rate-limit", () => {
  it.each(["fetch", "search", "api"])(
    "S2.1 check with the intent %s tells whether to proceed, and takes nothing",
    (intent) => {
      const { limiter } = rig({ presets: ["collector"] });
      for (let index = 0; index < 100; index += 1) {
        expect(limiter.check({ host: "finance.yahoo.com", intent })).toEqual({ proceed: true, waitMs: 0 });
      }
      expect(limiter.stats("finance.yahoo.com")).toBeUndefined();
    },
  );

  it("S2.1 the wait is the exact delay and the reason says why", async () => {
    const { clock, limiter } = rig({ presets: ["collector"] });
    limiter.record("finance.yahoo.com", "success");
    await clock.advance(300);
    const decision = limiter.check({ host: "finance.yahoo.com", intent: "fetch" });
    expect(decision).toMatchObject({ proceed: false, waitMs: 1_700 });
    expect(decision.reason).toMatch(/2/);
    await clock.advance(decision.waitMs - 1);
    expect(limiter.check("finance.yahoo.com")).toMatchObject({ proceed: false, waitMs: 1 });
    await clock.advance(1);
    expect(limiter.check("finance.yahoo.com")).toEqual({ proceed: true, waitMs: 0 });
  });

  it("S2.1 record sets the last request time and counts in the window", async () => {
    const { clock, limiter } = rig({ presets: ["collector"] });
    limiter.record("reuters.com", "success");
    expect(limiter.elapsedMs("reuters.com")).toBe(0);
    await clock.advance(3_000);
    limiter.record("reuters.com", "success");
    expect(limiter.stats("reuters.com")).toMatchObject({ totalRequests: 2, window: { calls: 2, remaining: 0 } });
    expect(limiter.check("reuters.com")).toMatchObject({ proceed: false, waitMs: 57_000 });
  });

  it.each([
    ["success", 0],
    ["rate_limited", 60_000],
    ["server_error", 5_000],
    ["timeout", 5_000],
  ] as const)("S2.1 record of %s holds the host for %i ms", (outcome, holdMs) => {
    const { limiter } = rig({ presets: ["collector"] });
    limiter.record("finance.yahoo.com", outcome);
    expect(cooldownOf(limiter, "finance.yahoo.com")).toBe(holdMs);
  });

  it("S2.1 check and record alone keep a caller within its limits, with no permit", async () => {
    const { clock, limiter } = rig({ presets: ["collector"] });
    const starts: number[] = [];
    while (starts.length < 8) {
      const decision = limiter.check({ host: "finance.yahoo.com", intent: "fetch" });
      await clock.advance(decision.waitMs);
      limiter.record("finance.yahoo.com", "success");
      starts.push(clock.now());
    }
    expect(starts).toEqual([0, 2_000, 4_000, 60_000, 62_000, 64_000, 120_000, 122_000]);
    expect(limiter.stats("finance.yahoo.com")).toMatchObject({ inFlight: 0, waiting: 0, totalRequests: 8 });
  });

  it("S2.2 a host has a gap, a number per minute and a backoff of its own", async () => {
    const { clock, limiter } = rig({ hosts: { "x.org": { minDelay: "1s", window: "3/min", backoff: "exponential" } } });
    const permits = many(4, () => limiter.acquire("x.org"));
    await clock.advance(60_000);
    expect(await startsOf(permits)).toEqual([0, 1_000, 2_000, 60_000]);
    limiter.record("x.org", "timeout");
    expect(cooldownOf(limiter, "x.org")).toBe(5_000);
  });

  it("S2.2 a wildcard covers each host it matches on its own, and others get the default", async () => {
    const { limiter } = rig({ default: { minDelay: "9s" }, hosts: { "*.company-ir": { minDelay: "1s" } } });
    await limiter.acquire("a.company-ir");
    expect(limiter.check("a.company-ir").waitMs).toBe(1_000);
    expect(limiter.check("b.company-ir").waitMs).toBe(0);
    await limiter.acquire("elsewhere.org");
    expect(limiter.check("elsewhere.org").waitMs).toBe(9_000);
  });

  it.each(["none", "linear", "exponential"] as const)("S2.2 the backoff %s can be chosen", async (backoff) => {
    const holds = await holdsAfterFailures(rig({ default: { backoff } }), "x.org", 3);
    expect(holds).toEqual(
      { none: [0, 0, 0], linear: [5_000, 10_000, 15_000], exponential: [5_000, 10_000, 20_000] }[backoff],
    );
  });

  it.each(table)(
    "S2.3 the preset collector gives $host its gap of $minDelayMs ms and $perMinute a minute",
    async (row) => {
      const { clock, limiter } = rig({ presets: ["collector"] });
      const permits = many(row.perMinute + 1, () => limiter.acquire(row.host));
      await clock.advance(60_000);
      const paced = many(row.perMinute, (index) => index * row.minDelayMs);
      expect(await startsOf(permits)).toEqual([...paced, 60_000]);
    },
  );

  it.each(table)("S2.3 the preset collector backs off from $host as its table says", async (row) => {
    expect(await holdsAfterFailures(rig({ presets: ["collector"] }), row.host, 3)).toEqual(row.holds);
  });

  it("S2.3 an entry of one's own beats the preset", async () => {
    const { limiter } = rig({ presets: ["collector"], hosts: { "reuters.com": { minDelay: "7s" } } });
    await limiter.acquire("reuters.com");
    expect(limiter.check("reuters.com").waitMs).toBe(7_000);
  });

  it("S2.4 the exponential ladder is 5, 10, 20, 40, 60 s and stays there", async () => {
    const holds = await holdsAfterFailures(rig({ default: { backoff: "exponential" } }), "x.org", 7);
    expect(holds).toEqual([5_000, 10_000, 20_000, 40_000, 60_000, 60_000, 60_000]);
  });

  it("S2.4 the linear ladder is 5 s more each time, up to 30 s", async () => {
    const holds = await holdsAfterFailures(rig({ default: { backoff: "linear" } }), "x.org", 8);
    expect(holds).toEqual([5_000, 10_000, 15_000, 20_000, 25_000, 30_000, 30_000, 30_000]);
  });

  it("S2.4 a success ends the backoff, so that the next failure is a first one", async () => {
    const made = rig({ default: { backoff: "exponential" } });
    await holdsAfterFailures(made, "x.org", 3);
    made.limiter.record("x.org", "success");
    expect(cooldownOf(made.limiter, "x.org")).toBe(0);
    await made.clock.advance(1_000);
    expect(await holdsAfterFailures(made, "x.org", 1)).toEqual([5_000]);
  });

  it.each(["none", "linear", "exponential"] as const)(
    "S2.5 with the backoff %s a 429 holds for its Retry-After",
    (backoff) => {
      const { limiter } = rig({ default: { backoff } });
      limiter.record("x.org", { kind: "rate_limited", retryAfterMs: 7_000 });
      expect(cooldownOf(limiter, "x.org")).toBe(7_000);
      limiter.record("y.org", { status: 429, headers: { "Retry-After": "8" } });
      expect(cooldownOf(limiter, "y.org")).toBe(8_000);
    },
  );

  it.each(["none", "linear", "exponential"] as const)(
    "S2.5 with the backoff %s a 429 without it holds for 60 s",
    (backoff) => {
      const { limiter } = rig({ default: { backoff } });
      limiter.record("x.org", "rate_limited");
      expect(cooldownOf(limiter, "x.org")).toBe(60_000);
      limiter.record("y.org", { status: 429 });
      expect(cooldownOf(limiter, "y.org")).toBe(60_000);
    },
  );

  it.each([429, 500, 503])("S2.6 an answer of %i is not retried by the limiter: the task runs once", async (status) => {
    const { clock, limiter } = rig({ default: { minDelay: 10 } });
    let calls = 0;
    const answer = await limiter.run("x.org", () => {
      calls += 1;
      return { status };
    });
    await clock.advance(600_000);
    expect(answer).toEqual({ status });
    expect(calls).toBe(1);
  });
});
