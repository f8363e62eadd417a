import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Clock, type Limiter, type Limits, type Permit, politely } from "../../src/index.js";
import { VirtualClock } from "../../src/testing/index.js";
import { spanUs } from "../laws/arbitraries.js";
import { seeded } from "../laws/seeded.js";

const hosts = ["a.example", "b.example"];

const anyLimits: fc.Arbitrary<Limits> = fc.record(
  {
    minDelay: fc.integer({ min: 1, max: 400 }),
    rate: fc.record({ count: fc.integer({ min: 1, max: 9 }), per: fc.integer({ min: 10, max: 900 }) }),
    maxHold: fc.integer({ min: 50, max: 3_000 }),
  },
  { requiredKeys: ["maxHold"] },
);

type Step = {
  readonly kind: "try" | "acquire" | "release" | "unused" | "bad" | "configure" | "reset";
  readonly host: number;
  readonly pick: number;
  readonly afterUs: number;
};

const anyStep: fc.Arbitrary<Step> = fc.record({
  kind: fc.constantFrom("try", "try", "try", "acquire", "release", "release", "unused", "bad", "configure", "reset"),
  host: fc.nat(1),
  pick: fc.nat(9),
  afterUs: spanUs(500),
});

describe("the short way of hosts with a gap and a bucket at most", () => {
  it("grants, refuses and counts as the composition of all limits does", async () => {
    const scene = fc.tuple(
      fc.array(anyLimits, { minLength: 2, maxLength: 3 }),
      fc.nat(2),
      fc.array(anyStep, { maxLength: 60 }),
    );
    await fc.assert(
      fc.asyncProperty(scene, async ([limits, keepStats, steps]) => {
        const told: unknown[][] = [];
        // Where anybody listens, every start goes the long way.
        for (const isShort of [true, false]) {
          const clock = new VirtualClock();
          const limiter = politely({ default: limits[0] }, { clock, keepStats });
          if (!isShort) limiter.subscribe(() => undefined);
          told.push(await play(limiter, clock, limits, steps));
        }
        expect(told[0]).toEqual(told[1]);
      }),
      seeded(200),
    );
  });
});

/** The same with the short way and, since somebody listens, without it. */
async function bothWays<Seen>(see: (limiter: Limiter) => Seen | Promise<Seen>, make: () => Limiter): Promise<Seen[]> {
  const watched = make();
  watched.subscribe(() => undefined);
  return [await see(make()), await see(watched)];
}

describe("after a change of policy the short way", () => {
  it("counts starts in flight that are released later in a window that is new", async () => {
    for (let nth = 0; nth < 60; nth += 10) {
      const host = `h${nth}.example`;
      const startsLeft = async (limiter: Limiter): Promise<number> => {
        for (let other = 0; other < 60; other++) limiter.tryAcquire(`h${other}.example`);
        const permits = Array.from({ length: 4 }, () => limiter.tryAcquire(host));
        limiter.configure({ default: { window: "6/min" } });
        for (const permit of permits) permit?.release();
        let count = 0;
        while (limiter.tryAcquire(host) !== undefined) count += 1;
        return count;
      };
      const make = (): Limiter => politely({ default: { minDelay: 0 } }, { clock: new VirtualClock() });
      expect(await bothWays(startsLeft, make)).toEqual([1, 1]);
    }
  });

  it("counts a host with its port as the host, once no entry names the port", async () => {
    const limits: Limits = { rate: "1/min", burst: 2 };
    const clock = new VirtualClock();
    const keys = async (limiter: Limiter): Promise<unknown> => {
      for (let start = 0; start < 2; start++) limiter.tryAcquire("a.example:8080")?.release();
      await clock.advance(60_000);
      limiter.configure({ default: limits });
      return limiter.tryAcquire("a.example:8080")?.key;
    };
    const make = (): Limiter => politely({ hosts: { "a.example:8080": limits }, default: limits }, { clock });
    expect(await bothWays(keys, make)).toEqual(["a.example", "a.example"]);
  });
});

it("starts nobody after its deadline, however long the decision takes", async () => {
  let nowMs = 0;
  const timers = new Map<object, { readonly atMs: number; readonly fn: () => void }>();
  // A clock that goes on with every reading.
  const clock: Clock = {
    now: () => (nowMs += 0.25),
    wall: () => 0,
    setTimer: (atMs, fn) => {
      const timer = {};
      timers.set(timer, { atMs, fn });
      return timer;
    },
    clearTimer: (timer) => void timers.delete(timer as object),
  };
  for (let maxWait = 998; maxWait < 1004; maxWait += 0.25) {
    const limiter = politely({ default: { rate: "1/s" } }, { clock });
    limiter.tryAcquire("a.example");
    const wait = limiter.acquire("a.example", { maxWait }).then(
      ({ waitedMs }) => waitedMs,
      () => 0,
    );
    for (const [timer, { atMs, fn }] of timers) {
      timers.delete(timer);
      nowMs = Math.max(nowMs, atMs);
      fn();
    }
    expect(await wait).toBeLessThanOrEqual(maxWait);
  }
});

it("has a sharp timer where gap and bucket allow a start at the same instant", async () => {
  const slacks = async (limiter: Limiter): Promise<unknown> => {
    slackMs.length = 0;
    limiter.tryAcquire("a.example", { cost: 2 });
    void limiter.acquire("a.example");
    void limiter.acquire("a.example");
    await clock.advance(1_500);
    return [...slackMs];
  };
  const slackMs: (number | undefined)[] = [];
  const clock = new VirtualClock();
  const own: Clock = {
    now: () => clock.now(),
    wall: () => clock.wall(),
    setTimer: (atMs, fn, slack) => {
      slackMs.push(slack);
      return clock.setTimer(atMs, fn);
    },
    clearTimer: (timer) => clock.clearTimer(timer),
  };
  const make = (): Limiter => politely({ default: { minDelay: 1_000, rate: "1/s", burst: 2 } }, { clock: own });
  const [short, composed] = await bothWays(slacks, make);
  expect(short).toEqual(composed);
});

/** Plays the steps and says all that could be seen of them. */
async function play(
  limiter: Limiter,
  clock: VirtualClock,
  limits: readonly Limits[],
  steps: readonly Step[],
): Promise<unknown[]> {
  const seen: unknown[] = [];
  const open: Permit[] = [];
  for (const { kind, host, pick, afterUs } of steps) {
    await clock.advance(afterUs / 1000);
    const name = hosts[host];
    if (kind === "try") {
      const permit = limiter.tryAcquire(name);
      if (permit !== undefined) open.push(permit);
      seen.push(permit?.startedAtMs);
    } else if (kind === "acquire") {
      void limiter.acquire(name).then((permit) => {
        seen.push(permit.startedAtMs);
        open.push(permit);
      });
      await clock.settle();
    } else if (kind === "configure") limiter.configure({ default: limits[pick % limits.length] });
    else if (kind === "reset") limiter.reset(name);
    else {
      const [permit] = open.splice(pick % Math.max(1, open.length), 1);
      permit?.release(kind === "unused" ? "unused" : kind === "bad" ? "server_error" : "success");
    }
    seen.push(
      limiter.explain(name),
      limiter.stats().map((stats) => stats.toJSON()),
    );
  }
  await clock.runToEnd();
  return seen;
}
