import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Limiter, type Limits, type Permit, politely, type Target } from "../../src/index.js";
import { VirtualClock } from "../../src/testing/index.js";
import { playModel } from "../oracle/model.js";
import { drained } from "../oracle/script.js";
import { toLimits } from "../oracle/spec.js";
import { anyScript, anySpec, costBound, spanUs } from "./arbitraries.js";
import { play, startTimes } from "./play.js";
import { seeded } from "./seeded.js";

describe("L6 order", () => {
  it("orders a lane by priority and age, ties by arrival, and lets nobody pass the head however heavy", async () => {
    const scene = fc
      .tuple(anySpec(), spanUs(20_000))
      .chain(([spec, ageingUs]) =>
        fc.tuple(
          fc.constant(spec),
          fc.constant(ageingUs),
          anyScript({ maxCost: costBound(spec), priorities: true, cancels: true, maxLength: 50 }),
        ),
      );
    await fc.assert(
      fc.asyncProperty(scene, async ([spec, ageingUs, body]) => {
        const script = drained(body, 10, 2_500_000);
        const run = await play(script, {
          policies: [{ default: toLimits(spec) }],
          options: { ageing: ageingUs / 1000 },
        });
        expect(startTimes(run.calls)).toEqual(startTimes(playModel(script, { specs: [spec], ageingUs })));
      }),
      seeded(120),
    );
  });

  it("serves lanes that share a scope in turns: no lane is ever two starts ahead of another that waits", async () => {
    const scene = fc.tuple(
      fc.integer({ min: 2, max: 6 }),
      fc.shuffledSubarray(
        Array.from({ length: 24 }, (_, index) => index),
        { minLength: 24 },
      ),
      fc.constantFrom<Limits>({ minDelay: 100 }, { window: "1/100ms" }, { rate: "10/s" }, { concurrency: 1 }),
      // The hosts' own limits never bind longer than what they share.
      fc.constantFrom<Limits>({}, { concurrency: 1 }, { minDelay: 10 }, { window: "1/50ms", concurrency: 1 }),
      fc.boolean(),
    );
    await fc.assert(
      fc.asyncProperty(scene, async ([hosts, order, shared, own, hasOther]) => {
        const clock = new VirtualClock();
        const limiter = politely({ default: own, global: shared }, { clock });
        // With somebody else in front all lanes wait from one instant on. Without, one starts at the instant it comes:
        // that was no turn it had waited for, and it may have one more than the others.
        const other = hasOther ? await limiter.acquire("other.example") : undefined;
        clock.setTimer(50, () => other?.release());
        const turns: number[] = [];
        const waits = order.map((index) => {
          const host = index % hosts;
          return limiter.acquire(`h${host}.example`).then((permit) => {
            turns.push(host);
            clock.setTimer(clock.now() + 50, () => permit.release());
          });
        });
        await clock.runToEnd();
        await Promise.all(waits);
        const left = Array.from({ length: hosts }, (_, host) => order.filter((index) => index % hosts === host).length);
        const served = left.map(() => 0);
        const leads: number[] = [];
        for (const host of turns) {
          served[host] += 1;
          left[host] -= 1;
          const waiting = served.filter((_, other) => left[other] > 0);
          leads.push(served[host] - Math.min(...waiting));
        }
        expect(Math.max(...leads)).toBeLessThanOrEqual(hasOther ? 1 : 2);
      }),
      seeded(80),
    );
  });

  it("serves whoever came first at a shared scope, also when the newcomer's own key frees at the same instant", async () => {
    const clock = new VirtualClock();
    const limiter = politely({ default: { concurrency: 1 }, global: { concurrency: 1 } }, { clock });
    const held = await limiter.acquire("a.example");
    const order: string[] = [];
    for (const host of ["b.example", "a.example"]) {
      await clock.advance(10);
      void limiter.acquire(host).then((permit) => {
        order.push(host);
        permit.release();
      });
    }
    held.release();
    await clock.settle();
    expect(order).toEqual(["b.example", "a.example"]);
  });

  it("lets a high priority of one host go first at the shared scope", async () => {
    const clock = new VirtualClock();
    const limiter = politely({ default: {}, global: { minDelay: 100 } }, { clock });
    const order: string[] = [];
    const wait = (host: string, priority: number): Promise<void> =>
      limiter.acquire(host, { priority }).then((permit) => {
        order.push(host);
        permit.release();
      });
    const waits = [wait("a.example", 0), wait("b.example", 0), wait("c.example", 0), wait("d.example", 5)];
    await clock.runToEnd();
    await Promise.all(waits);
    expect(order).toEqual(["a.example", "d.example", "b.example", "c.example"]);
  });

  it("never starves a waiter that needs two scopes others keep busy one at a time", async () => {
    const scene = fc.tuple(
      fc.integer({ min: 20, max: 900 }),
      fc.integer({ min: 20, max: 900 }),
      fc.integer({ min: 1, max: 10 }),
    );
    await fc.assert(
      fc.asyncProperty(scene, async ([holdX, holdY, ageingSeconds]) => {
        const clock = new VirtualClock();
        const ageing = ageingSeconds * 1000;
        const limiter = politely({ default: {}, scopes: { "key:*": { concurrency: 1 } } }, { clock, ageing });
        const endMs = ageing * 3 + 10_000;
        keepBusy({ limiter, clock, host: "x.example", scope: "key:x", holdMs: holdX, endMs });
        keepBusy({ limiter, clock, host: "y.example", scope: "key:y", holdMs: holdY, endMs });
        await clock.advance(7);
        let both: Permit | undefined;
        void limiter.acquire({ host: "z.example", scopes: ["key:x", "key:y"] }).then((permit) => {
          both = permit;
          permit.release();
        });
        await clock.advance(endMs + 2000);
        expect(both).toBeDefined();
        // Once older than ageing both keys are kept for it, so it waits for at most one more holder of each.
        expect(both?.waitedMs).toBeLessThanOrEqual(ageing + holdX + holdY);
      }),
      seeded(30),
    );
  });

  it("keeps the keys of one that is old enough from the instant on at which a probe's answer ends what held it", async () => {
    const clock = new VirtualClock();
    const limiter = politely(
      { default: {}, global: { concurrency: 2 }, scopes: { "key:x": { concurrency: 1 } } },
      { clock },
    );
    const started: string[] = [];
    const wait = (name: string, target: Target, priority = 0): Promise<Permit> =>
      limiter.acquire(target, { priority }).then((permit) => {
        started.push(name);
        return permit;
      });
    const holder = await limiter.acquire({ host: "c.example", scopes: ["key:x"] });
    const refused = await limiter.acquire("b.example");
    void wait("old", { host: "b.example", scopes: ["key:x"] });
    refused.release({ kind: "rate_limited", retryAfterMs: 5003 });
    const probe = wait("probe", "b.example", 1);
    await clock.advance(7000);
    void wait("young", "b.example");
    void wait("other", { host: "d.example", scopes: ["key:x"] });
    await clock.advance(3001);
    expect(started).toEqual(["probe"]);
    // Old since 10 s, and held up by its host until now, a little before the others would stop waiting for the probe.
    (await probe).release();
    await clock.advance(1);
    expect(started).toEqual(["probe"]);
    holder.release();
    await clock.settle();
    expect(started).toEqual(["probe", "old", "young"]);
  });

  it("keeps no keys for one whose host waits for the answer of its probe", async () => {
    const clock = new VirtualClock();
    const limiter = politely({ default: {}, global: { minDelay: 1 }, scopes: { "key:*": {} } }, { clock });
    for (const [host, retryAfterMs] of [
      ["b.example", 12_000],
      ["a.example", 13_000],
    ] as const) {
      limiter.record(host, { kind: "rate_limited", retryAfterMs });
    }
    const startedMs = async (target: Target, priority = 0): Promise<number> =>
      (await limiter.acquire(target, { priority })).startedAtMs;
    const probes = [1, 2].map(() => startedMs({ host: "b.example", scopes: ["key:x"] }, 1));
    const old = startedMs("b.example");
    const other = startedMs("a.example");
    await clock.advance(30_000);
    // The probe goes when the hold is over, and is never answered: the rest of its host follow after 5 s. Nobody else waits for that.
    expect(await Promise.all([...probes, old, other])).toEqual([12_000, 17_001, 17_000, 13_000]);
  });

  it("does not let a search that waits for its own limit stand in the way of a page", async () => {
    const clock = new VirtualClock();
    const limiter = politely(
      { default: {}, hosts: { "a.example": { minDelay: 10, intents: { search: { minDelay: 5000 } } } } },
      { clock },
    );
    (await limiter.acquire({ host: "a.example", intent: "search" })).release();
    const search = limiter.acquire({ host: "a.example", intent: "search" });
    await clock.advance(10);
    const page = limiter.acquire("a.example");
    await clock.runToEnd();
    expect((await page).startedAtMs).toBe(10);
    expect((await search).startedAtMs).toBe(5000);
  });
});

interface Busy {
  readonly limiter: Limiter;
  readonly clock: VirtualClock;
  readonly host: string;
  readonly scope: string;
  readonly holdMs: number;
  readonly endMs: number;
}

/** Keeps two waiters in a lane at all times, so that its scope is never idle, until the end. */
function keepBusy({ limiter, clock, host, scope, holdMs, endMs }: Busy): void {
  const again = (): void => {
    if (clock.now() > endMs) return;
    void limiter.acquire({ host, scopes: [scope] }).then((permit) => {
      clock.setTimer(clock.now() + holdMs, () => {
        again();
        permit.release();
      });
    });
  };
  again();
  again();
}
