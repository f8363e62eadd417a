import { AsyncLocalStorage } from "node:async_hooks";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type LimiterEvent, limit, politely } from "../../src/index.js";
import { VirtualClock } from "../../src/testing/index.js";
import { fitsAt } from "../oracle/fitsAt.js";
import { drained } from "../oracle/script.js";
import { type LimitSpec, toLimits } from "../oracle/spec.js";
import { type Start, toUs } from "../oracle/trace.js";
import { anyEnding, anyScript, anySpec, costBound, spanUs } from "./arbitraries.js";
import { play, startTimes } from "./play.js";
import { seeded } from "./seeded.js";
import { anyWorld, toPolicy, worldCost, worldHosts, worldScopes } from "./worlds.js";

describe("L15 transparent", () => {
  it("names exactly the limits that would make a request wait now, the most binding first", async () => {
    const moves = fc.array(fc.record({ afterUs: fc.oneof(fc.constant(0), spanUs(900)), isReleased: fc.boolean() }), {
      minLength: 1,
      maxLength: 30,
    });
    await fc.assert(
      fc.asyncProperty(anySpec({ answer: false }), moves, async (spec, steps) => {
        const clock = new VirtualClock();
        const limiter = limit(toLimits(spec), { clock });
        const starts: Start[] = [];
        for (const { afterUs, isReleased } of steps) {
          await clock.advance(afterUs / 1000);
          const atUs = toUs(clock.now());
          const explanation = limiter.explain();
          const binding = parts(spec).filter(([, part]) => !fitsAt({ spec: part, starts, cost: 1, atUs }));
          expect(new Set(explanation.causes.map((cause) => cause.limit))).toEqual(
            new Set(binding.map(([kind]) => kind)),
          );
          expect(explanation.proceed).toBe(binding.length === 0);
          const isAnswerAwaited = explanation.causes.some((cause) => cause.limit === "concurrency");
          expect(limiter.check()).toMatchObject({
            proceed: explanation.proceed,
            waitMs: Math.ceil(explanation.waitMs),
          });
          expect(explanation.isEstimate ?? false).toBe(isAnswerAwaited);
          const waits = explanation.causes.map((cause) => cause.waitMs);
          expect(waits).toEqual([...waits].sort((a, b) => b - a));
          for (const cause of explanation.causes) expect(cause.message).toMatch(/\d/);
          const permit = limiter.tryAcquire();
          expect(permit !== undefined).toBe(explanation.proceed);
          if (permit === undefined) continue;
          if (isReleased) permit.release("success");
          starts.push(isReleased ? { atUs, cost: 1, releasedUs: atUs } : { atUs, cost: 1 });
        }
      }),
      seeded(120),
    );
  });

  it("says the same earliest time in check and explain while an answer is awaited", () => {
    const limiter = limit({ concurrency: 1 }, { clock: new VirtualClock() });
    limiter.tryAcquire();
    expect(limiter.explain().waitMs).toBe(limiter.check().waitMs);
  });

  it("says how many are ahead, and gives every wait and every refusal a reason", async () => {
    const scene = anySpec().chain((spec) =>
      fc.tuple(
        fc.constant(spec),
        anyScript({ maxCost: costBound(spec), cancels: true, maxWaits: true, endings: anyEnding, maxLength: 30 }),
      ),
    );
    await fc.assert(
      fc.asyncProperty(scene, async ([spec, body]) => {
        const events: LimiterEvent[] = [];
        const run = await play(drained(body, 4, 2_000_000), {
          policies: [{ default: toLimits(spec) }],
          onReady: (limiter) => limiter.subscribe((event) => events.push(event)),
          onStep: ({ limiter, calls }) => {
            const waiting = calls.filter((call) => call.fate === "waiting").length;
            const explanation = limiter.explain("a.example");
            expect(explanation.ahead).toBe(waiting);
            if (waiting > 0) expect(explanation.proceed).toBe(false);
            if (!explanation.proceed) expect(explanation.causes.length).toBeGreaterThan(0);
          },
        });
        for (const event of events) {
          if (event.type === "wait" || event.type === "refuse") expect(event.reason).toMatch(/./);
          if (event.type === "cooldown") expect(event.because).toMatch(/./);
        }
        const starts = run.calls.filter((call) => call.fate === "started").length;
        expect(events.filter(({ type }) => type === "grant")).toHaveLength(starts);
      }),
      seeded(80),
    );
  });

  it("says which scope and which answer made it wait", async () => {
    const clock = new VirtualClock();
    const limiter = politely(
      {
        default: {},
        global: { minDelay: 500 },
        scopes: { "key:*": { window: "1/10s" } },
        hosts: { "*.x.example": { rate: "1/min" } },
      },
      { clock },
    );
    limiter
      .tryAcquire({ host: "a.x.example", scopes: ["key:abc"] })
      ?.release({ kind: "rate_limited", retryAfterMs: 30_000 });
    const { causes, origin, waitMs } = limiter.explain({ host: "a.x.example", scopes: ["key:abc"] });
    expect(origin).toBe("hosts.*.x.example");
    expect(waitMs).toBe(60_000);
    expect(causes.map(({ limit: kind, scope, key }) => [kind, scope, key])).toEqual([
      ["rate", "host", "a.x.example"],
      ["cooldown", "host", "a.x.example"],
      ["window", "key:abc", "key:abc"],
      ["minDelay", "global", "global"],
    ]);
    expect(causes[1].because).toMatch(/30 s/);
  });

  it("breaks nothing when listeners and the logger throw", async () => {
    const scene = anyWorld().chain((world) =>
      fc.tuple(
        fc.constant(world),
        anyScript({
          hosts: worldHosts,
          scopes: worldScopes,
          maxCost: worldCost(world),
          tries: true,
          cancels: true,
          outside: true,
          endings: anyEnding,
        }),
      ),
    );
    const fail = (): never => {
      throw new Error("a listener's own fault");
    };
    await fc.assert(
      fc.asyncProperty(scene, async ([world, body]) => {
        const script = drained(body, 6, 3_000_000);
        const policies = [toPolicy(world)];
        let heard = 0;
        const loud = await play(script, {
          policies,
          options: { logger: { debug: fail, info: fail, warn: fail } },
          onReady: (limiter) => {
            limiter.subscribe(fail);
            limiter.subscribe(() => {
              heard += 1;
            });
          },
        });
        const calm = await play(script, { policies });
        expect(startTimes(loud.calls)).toEqual(startTimes(calm.calls));
        if (loud.calls.length > 0) expect(heard).toBeGreaterThan(0);
      }),
      seeded(60),
    );
  });

  it("gives the place back and passes the error on when a task throws, at once or later", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.constantFrom("value", "throw", "reject"), { minLength: 1, maxLength: 20 }),
        async (tasks) => {
          const clock = new VirtualClock();
          const limiter = politely({ default: { concurrency: 1 } }, { clock });
          const results = tasks.map((kind, index) =>
            limiter
              .run("a.example", () => {
                if (kind === "throw") throw new Error(`task ${index}`);
                return kind === "reject" ? Promise.reject(new Error(`task ${index}`)) : index;
              })
              .catch((error: Error) => error.message),
          );
          await clock.runToEnd();
          expect(await Promise.all(results)).toEqual(
            tasks.map((kind, index) => (kind === "value" ? index : `task ${index}`)),
          );
          expect(limiter.stats("a.example")).toMatchObject({ inFlight: 0, waiting: 0, granted: tasks.length });
        },
      ),
      seeded(30),
    );
  });

  it("keeps each caller's async context, whoever's timer or release wakes it", async () => {
    const storage = new AsyncLocalStorage<string>();
    const clock = new VirtualClock();
    const limiter = politely({ default: { minDelay: 10, concurrency: 1 } }, { clock });
    const seen: string[] = [];
    const note = (what: string): void => {
      seen.push(`${what} in ${storage.getStore() ?? "none"}`);
    };
    const callers = ["first", "second", "third"].flatMap((name) =>
      storage.run(name, () => [
        limiter.run("a.example", () => note(`task of ${name}`)).then(() => note(`end of ${name}`)),
        limiter.acquire("a.example").then((permit) => {
          note(`permit of ${name}`);
          permit.release();
        }),
        limiter.wrap("a.example", () => note(`wrapped of ${name}`))(),
      ]),
    );
    await storage.run("the timer's own", () => clock.runToEnd());
    await Promise.all(callers);
    expect(seen).toHaveLength(12);
    for (const line of seen) {
      const [, of, where] = /of (\w+) in (.+)$/.exec(line) ?? [];
      expect([line, where]).toEqual([line, of]);
    }
  });
});

/** The spec taken apart: one spec for each limit, under the name that causes carry. */
function parts({ gapUs, rate, windows = [], concurrency }: LimitSpec): [string, LimitSpec][] {
  return [
    ...(gapUs === undefined ? [] : [["minDelay", { gapUs }] as [string, LimitSpec]]),
    ...(rate === undefined ? [] : [["rate", { rate }] as [string, LimitSpec]]),
    ...windows.map((window): [string, LimitSpec] => ["window", { windows: [window] }]),
    ...(concurrency === undefined ? [] : [["concurrency", { concurrency }] as [string, LimitSpec]]),
  ];
}
