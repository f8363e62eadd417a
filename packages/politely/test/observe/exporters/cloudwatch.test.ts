import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type EmfOptions, emfMetrics } from "../../../src/cloudwatch.js";
import { limit, politely } from "../../../src/index.js";
import { exclusive } from "../../../src/lease.js";
import { memoryStore } from "../../../src/stores/memory.js";
import { VirtualClock } from "../../../src/testing/index.js";
import { seeded } from "../../laws/seeded.js";
import { many, track } from "../../verbs/support.js";
import { checkEmf, type EmfLine, valuesOf } from "./emfRules.js";

function rig(options: Partial<EmfOptions> = {}, policy: Parameters<typeof politely>[0] = { default: {} }) {
  const clock = new VirtualClock();
  const limiter = politely(policy, { clock });
  const lines: EmfLine[] = [];
  const write = (line: string): void => void lines.push(checkEmf(line));
  const metrics = emfMetrics(limiter, { namespace: "Test", write, clock, ...options });
  return { clock, limiter, lines, metrics };
}

describe("emfMetrics", () => {
  it("writes nothing before a flush, and nothing when nothing happened", async () => {
    const { limiter, lines, metrics } = rig();
    (await limiter.acquire("a.org")).release();
    expect(lines).toEqual([]);
    await metrics.flush();
    expect(lines).toHaveLength(1);
    await metrics.flush();
    expect(lines).toHaveLength(1);
  });

  it("counts from flush to flush, by host and over all hosts", async () => {
    const { clock, limiter, lines, metrics } = rig(
      { dimensions: { Service: "collector" } },
      { default: { minDelay: "2s" } },
    );
    void many(3, () => track(limiter.run("a.org", () => undefined)));
    await clock.advance(2_000);
    await metrics.flush();
    await clock.advance(2_000);
    await metrics.flush();
    expect(lines).toMatchObject([
      {
        Host: "a.org",
        Service: "collector",
        Starts: 2,
        WaitTime: [0, 2],
        StartInterval: [2],
        StartConcurrency: [1, 1],
        Waiting: 1,
      },
      { Host: "a.org", Service: "collector", Starts: 1, WaitTime: [4], StartInterval: [2], Waiting: 0 },
    ]);
    const [counted, present] = lines[0]._aws.CloudWatchMetrics;
    expect(counted.Dimensions).toEqual([["Service"], ["Service", "Host"]]);
    expect(present.Dimensions).toEqual([["Service", "Host"]]);
    expect(lines[0]._aws.Timestamp).toBe(Date.UTC(2026, 0, 1) + 2_000);
  });

  it("tells 429s, refusals with their codes, and tokens", async () => {
    const { clock, limiter, lines, metrics } = rig({}, { default: { rate: "1/s", burst: 5 } });
    (await limiter.acquire("a.org")).report({ status: 429, headers: { "retry-after": "30" } });
    expect(limiter.tryAcquire("a.org")).toBeUndefined();
    await clock.settle();
    await metrics.flush();
    expect(lines).toMatchObject([
      { Throttled: 1, Cooldowns: 1, Refused: 1, RefusedByCode: { POLITELY_BUSY: 1 }, TokensAvailable: 4, Cooldown: 30 },
    ]);
  });

  it("counts lease failures", async () => {
    const { clock, lines, metrics } = rig();
    const store = memoryStore(() => clock.now() * 1_000);
    const ask = () => metrics.countLease(exclusive(store, "run", { ttl: "30s", clock }));
    const lease = await ask();
    await ask();
    await ask();
    await metrics.flush();
    if (lease.held) await lease.release();
    await metrics.flush();
    expect(lines).toMatchObject([
      { LeasesTaken: 1, LeaseFailures: 2, LeasesHeld: 1, LeasesByResult: { taken: 1, refused: 2 } },
    ]);
  });

  it("gives ten hosts a dimension by default, and adds up the others", async () => {
    const { limiter, lines, metrics } = rig();
    for (let index = 0; index < 30; index++) (await limiter.acquire(`h${index}.org`)).release();
    await metrics.flush();
    expect(lines).toHaveLength(11);
    expect(lines.find(({ Host }) => Host === "other")).toMatchObject({ Starts: 20 });
  });

  it("flushes by itself when asked to, without overlap or a timer that stays", async () => {
    const { clock, limiter, lines, metrics } = rig({ everyMs: 60_000 });
    (await limiter.acquire("a.org")).release();
    await clock.advance(59_999);
    expect(lines).toHaveLength(0);
    await clock.advance(1);
    expect(lines).toHaveLength(1);
    (await limiter.acquire("a.org")).release();
    await metrics.close();
    expect(lines).toHaveLength(2);
    expect(clock.pendingTimers).toBe(0);
  });

  it("sets no timer unless asked to", () => {
    const { clock } = rig();
    expect(clock.pendingTimers).toBe(0);
  });

  it("tries every line though writing one fails, and says so", async () => {
    const clock = new VirtualClock();
    const limiter = politely({ default: {} }, { clock });
    let tried = 0;
    const write = (): void => {
      tried += 1;
      throw new Error("the pipe is closed");
    };
    const metrics = emfMetrics(limiter, { namespace: "Test", write, clock });
    for (const host of ["a.org", "b.org"]) (await limiter.acquire(host)).release();
    await expect(metrics.flush()).rejects.toThrow("the pipe is closed");
    expect(tried).toBe(2);
  });

  it("writes valid lines whose sums are right and whose extremes are there, whatever happened", async () => {
    const anyWait = fc.integer({ min: 0, max: 100_000 });
    await fc.assert(
      fc.asyncProperty(fc.array(anyWait, { maxLength: 400 }), async (waits) => {
        const clock = new VirtualClock();
        const limiter = limit({ minDelay: 0 }, { clock });
        const lines: EmfLine[] = [];
        const metrics = emfMetrics(limiter, {
          namespace: "Test",
          write: (line) => void lines.push(checkEmf(line)),
          clock,
        });
        const starts: number[] = [];
        for (const waitMs of waits) {
          clock.stall(waitMs);
          starts.push(clock.now());
          limiter.record("success");
        }
        await metrics.flush();
        const gaps = starts.slice(1).map((start, index) => (start - starts[index]) / 1_000);
        expect(lines.reduce((sum, { Starts }) => sum + Number(Starts), 0)).toBe(waits.length);
        const told = lines.flatMap((line) => valuesOf(line, "StartInterval"));
        expect(told.every((value) => gaps.includes(value))).toBe(true);
        if (gaps.length > 0)
          expect([Math.min(...told), Math.max(...told)]).toEqual([Math.min(...gaps), Math.max(...gaps)]);
        if (gaps.length <= 98) expect(told).toEqual(gaps);
      }),
      seeded(60),
    );
  });

  it.each([
    [{ namespace: "" }, RangeError],
    [{ namespace: "AWS/Lambda" }, RangeError],
    [{ namespace: ":x" }, RangeError],
    [{ namespace: "x".repeat(256) }, RangeError],
    [{ namespace: 3 }, TypeError],
    [{ dimensions: { Host: "x" } }, RangeError],
    [{ dimensions: { Starts: "x" } }, RangeError],
    [{ dimensions: { _aws: "x" } }, RangeError],
    [{ dimensions: { Service: "" } }, RangeError],
    [{ dimensions: { Service: 3 } }, TypeError],
    [{ dimensions: { Service: "über" } }, RangeError],
    [{ dimensions: Object.fromEntries(many(30, (index) => [`d${index}`, "x"])) }, RangeError],
    [{ everyMs: 10 }, RangeError],
    [{ everyMs: Number.NaN }, RangeError],
    [{ write: undefined }, TypeError],
    [{ every: 1 }, TypeError],
  ])("refuses %j", (wrong, kind) => {
    const limiter = politely({}, { clock: new VirtualClock() });
    const options = { namespace: "Test", write: () => undefined, ...wrong } as EmfOptions;
    expect(() => emfMetrics(limiter, options)).toThrow(kind);
  });
});
