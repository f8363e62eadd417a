import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Limiter, type Limits, politely } from "../../src/index.js";
import { VirtualClock } from "../../src/testing/index.js";
import { drained } from "../oracle/script.js";
import { toLimits } from "../oracle/spec.js";
import { anyEnding, anyScript, anySpec, costBound } from "./arbitraries.js";
import { play, startTimes } from "./play.js";
import { seeded } from "./seeded.js";

const hosts = ["a.example", "b.example"];

describe("L10 no amnesty", () => {
  it("starts a host's requests at the same times with and without a flood of other hosts", async () => {
    const scene = anySpec().chain((spec) =>
      fc.tuple(
        fc.constant(spec),
        anyScript({ hosts, maxCost: costBound(spec), tries: true, cancels: true, endings: anyEnding, maxLength: 30 }),
        fc.nat({ max: 3 }),
        fc.integer({ min: 0, max: 400 }),
      ),
    );
    await fc.assert(
      fc.asyncProperty(scene, async ([spec, body, keepStats, gapMs]) => {
        const script = drained(body, 8, 3_000_000);
        const named = Object.fromEntries(hosts.map((host) => [host, toLimits(spec)]));
        const policies = [{ default: { minDelay: gapMs }, hosts: named }];
        const quiet = await play(script, { policies });
        let next = 0;
        const flooded = await play(script, {
          policies,
          options: { keepStats },
          onStep: ({ limiter }) => {
            for (let index = 0; index < 30; index++) limiter.tryAcquire(`f${next++}.flood.example`)?.release();
          },
        });
        expect(startTimes(flooded.calls)).toEqual(startTimes(quiet.calls));
      }),
      seeded(80),
    );
  });

  it("keeps every kind of debt through any number of other keys", async () => {
    const owing: [string, Limits, (limiter: Limiter, host: string) => void][] = [
      ["gap", { minDelay: "2h" }, (limiter, host) => limiter.tryAcquire(host)?.release()],
      ["bucket", { rate: "1/h" }, (limiter, host) => limiter.tryAcquire(host)?.release()],
      ["window", { window: "1/2h" }, (limiter, host) => limiter.tryAcquire(host)?.release()],
      ["quota", { quota: { count: 1, per: "day" } }, (limiter, host) => limiter.tryAcquire(host)?.release()],
      ["place", { concurrency: 1, maxHold: "3h" }, (limiter, host) => void limiter.tryAcquire(host)],
      [
        "answer",
        { window: "1/1s", countFrom: "answer", maxHold: "3h" },
        (limiter, host) => void limiter.tryAcquire(host),
      ],
      [
        "cooldown",
        {},
        (limiter, host) => limiter.tryAcquire(host)?.release({ kind: "rate_limited", retryAfterMs: 7_200_000 }),
      ],
      ["pause", {}, (limiter, host) => limiter.pause(host)],
    ];
    const clock = new VirtualClock();
    const named = Object.fromEntries(owing.map(([name, limits]) => [`${name}.example`, limits]));
    const limiter = politely({ default: { minDelay: 5 }, hosts: named }, { clock, keepStats: 0, maxKeys: 500 });
    for (const [name, , act] of owing) act(limiter, `${name}.example`);
    const before = owing.map(([name]) => limiter.check(`${name}.example`).waitMs);
    let asked = 0;
    for (let minute = 1; minute <= 50; minute++) {
      await clock.advance(60_000);
      for (let index = 0; index < 100; index++) limiter.tryAcquire(`f${asked++}.flood.example`)?.release();
      limiter.stats();
    }
    for (const [index, [name]] of owing.entries()) {
      const decision = limiter.check(`${name}.example`);
      expect([name, decision.proceed]).toEqual([name, false]);
      if (["gap", "bucket", "window", "quota", "cooldown"].includes(name)) {
        expect([name, Math.round(decision.waitMs)]).toEqual([name, Math.round(before[index] - 50 * 60_000)]);
      }
      expect([name, limiter.tryAcquire(`${name}.example`)]).toEqual([name, undefined]);
    }
  });

  it("remembers the step of an incident through a flood, so that the next one climbs further", async () => {
    const clock = new VirtualClock();
    const limiter = politely({ default: { cooldown: [1000, 2000, 4000] } }, { clock, keepStats: 0 });
    limiter.tryAcquire("a.example")?.release("rate_limited");
    await clock.advance(600_000);
    for (let index = 0; index < 5000; index++) limiter.tryAcquire(`f${index}.flood.example`)?.release();
    limiter.stats();
    limiter.tryAcquire("a.example")?.release("rate_limited");
    expect(limiter.check("a.example").waitMs).toBe(2000);
  });

  it("refuses hosts beyond maxKeys while as many owe time, names when the first does not, and lets them in then", async () => {
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 30 }), fc.integer({ min: 1, max: 60 }), async (maxKeys, extra) => {
        const clock = new VirtualClock();
        const limiter = politely(
          { default: { window: "1/10s" }, hosts: { "named.example": { window: "1/10s" }, "*.own.example": {} } },
          { clock, maxKeys, keepStats: 0 },
        );
        for (let index = 0; index < maxKeys; index++) {
          await clock.advance(10);
          limiter.tryAcquire(`h${index}.example`)?.release();
        }
        for (let index = 0; index < extra; index++) {
          const host = `late${index}.${index % 2 === 0 ? "" : "own."}example`;
          const waitMs = 10_000 - (maxKeys - 1) * 10;
          expect(() => limiter.tryAcquire(host)).toThrow(
            expect.objectContaining({ code: "POLITELY_CAPACITY", key: host, owing: maxKeys, waitMs }),
          );
          expect(limiter.check(host)).toMatchObject({ proceed: false, waitMs });
        }
        expect(limiter.tryAcquire("h0.example")).toBeUndefined();
        expect(limiter.stats()).toMatchObject([{ host: "*", granted: maxKeys, refused: extra + 1 }]);
        await clock.advance(10_000 - (maxKeys - 1) * 10);
        expect(limiter.tryAcquire("late.example")).toBeDefined();
        expect(() => limiter.tryAcquire("later.example")).toThrow(/maxKeys/);
        // A host that the policy names has a row in any case.
        expect(limiter.tryAcquire("named.example")).toBeDefined();
      }),
      seeded(30),
    );
  });

  it("keeps statistics of the most recent idle hosts, folds the rest into one row and says how many", async () => {
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 12 }), fc.integer({ min: 1, max: 60 }), async (keepStats, count) => {
        const clock = new VirtualClock();
        const limiter = politely({ default: { minDelay: 1 } }, { clock, keepStats });
        for (let index = 0; index < count; index++) {
          limiter.tryAcquire(`h${index}.example`)?.release("success");
          await clock.advance(10);
        }
        const rows = limiter.stats();
        const folded = rows.find(({ host }) => host === "*");
        const kept = rows.filter(({ host }) => host !== "*").map(({ host }) => host);
        const expected = Array.from({ length: count }, (_, index) => `h${index}.example`).slice(
          Math.max(0, count - keepStats),
        );
        expect([...kept].sort()).toEqual([...expected].sort());
        expect(folded?.foldedHosts ?? 0).toBe(count - kept.length);
        expect(rows.reduce((sum, row) => sum + row.totalRequests, 0)).toBe(count);
        if (count > keepStats) expect(limiter.stats("h0.example")).toBeUndefined();
        expect(limiter.stats("never.example")).toBeUndefined();
      }),
      seeded(40),
    );
  });

  it("says how many hosts it folded when it keeps none", async () => {
    const clock = new VirtualClock();
    const limiter = politely({ default: { minDelay: 1 } }, { clock, keepStats: 0 });
    for (let index = 0; index < 5; index++) limiter.tryAcquire(`h${index}.example`)?.release();
    await clock.advance(10);
    expect(limiter.stats().map(({ host, foldedHosts, granted }) => [host, foldedHosts, granted])).toEqual([
      ["*", 5, 5],
    ]);
  });
});
