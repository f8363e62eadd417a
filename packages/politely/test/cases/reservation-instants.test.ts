import { describe, expect, it } from "vitest";
import type { Limiter, Permit } from "../../src/index.js";
import { granted, type Rig, rig, type Tracked, track } from "../verbs/support.js";

const scopes = { a: { concurrency: 1 }, b: { concurrency: 1 } } as const;
/** Its own limit holds it for an hour, so that somebody waits who needs b and does not stand there. */
const hosts = { "slow.example": { rate: "1/h" } } as const;

/** One holds a, and one that needs a and b waits for it; b is free, and somebody else needs it, too. */
function waitingForBoth(options: { readonly signal?: AbortSignal; readonly isThere?: boolean } = {}): Rig {
  const made = rig({ default: { enabled: false }, hosts, scopes });
  const { limiter } = made;
  granted(limiter.tryAcquire({ host: "holder.example", scopes: ["a"] }));
  granted(limiter.tryAcquire("slow.example"));
  track(limiter.acquire({ host: "slow.example", scopes: ["b"] }));
  const { signal, isThere = true } = options;
  if (isThere) track(limiter.acquire({ host: "both.example", scopes: ["a", "b"] }, signal && { signal }));
  track(limiter.acquire({ host: "behind.example", scopes: ["a"] }));
  return made;
}

/** Comes and gives up at one instant; says what became of it. */
function comeAndGo(limiter: Limiter, host: string, needs: readonly string[], priority = 0): Tracked<Permit> {
  const controller = new AbortController();
  const gone = track(limiter.acquire({ host, scopes: needs }, { signal: controller.signal, priority }));
  controller.abort();
  return gone;
}

describe("a reservation is made at the instant its lane is older than ageing", () => {
  it.each([
    ["nobody comes", []],
    ["somebody comes to the key it is stopped at, and gives up", ["a"]],
    ["somebody comes to the other key, and gives up", ["b"]],
  ])("when %s", async (_, needs) => {
    const world = waitingForBoth();
    await world.clock.advance(12_000);
    if (needs.length > 0) comeAndGo(world.limiter, "ghost.example", needs);
    await world.clock.settle();
    const other = track(world.limiter.acquire({ host: "new.example", scopes: ["b"] }));
    await world.clock.advance(1_000);
    expect(other.state).toBe("pending");
    expect(world.limiter.explain({ host: "more.example", scopes: ["b"] }).causes).toMatchObject([
      { limit: "reserved" },
    ]);
  });

  it("and not before", async () => {
    const { clock, limiter } = waitingForBoth();
    await clock.advance(10_000);
    expect(limiter.tryAcquire({ host: "new.example", scopes: ["b"] })).toBeDefined();
  });

  it("also for somebody who asks before the timer has fired", async () => {
    const { clock, limiter } = waitingForBoth();
    const seen: unknown[] = [];
    // Set before the queue's own timer, and so called first at the same instant.
    clock.setTimer(10_000.001, () => seen.push(limiter.tryAcquire({ host: "new.example", scopes: ["b"] })));
    await clock.advance(11_000);
    expect(seen).toEqual([undefined]);
  });

  it("also while its own host stops it, unless that is all that does", async () => {
    const { clock, limiter } = rig({
      default: { enabled: false },
      hosts: { ...hosts, "both.example": { minDelay: "15s" } },
      scopes,
    });
    granted(limiter.tryAcquire({ host: "holder.example", scopes: ["a"] }));
    granted(limiter.tryAcquire("slow.example"));
    granted(limiter.tryAcquire("both.example"));
    track(limiter.acquire({ host: "slow.example", scopes: ["b"] }));
    track(limiter.acquire({ host: "both.example", scopes: ["a", "b"] }));
    track(limiter.acquire({ host: "behind.example", scopes: ["a"] }));
    await clock.advance(10_000);
    granted(limiter.tryAcquire({ host: "new.example", scopes: ["b"] })).release();
    // Whoever takes b now may have it for longer than those five seconds.
    await clock.advance(0.001);
    expect(limiter.tryAcquire({ host: "new.example", scopes: ["b"] })).toBeUndefined();
  });
});

describe("a reservation ends", () => {
  it("when the one it was made for is gone, and only a newcomer is left in the lane", async () => {
    const starts: (number | undefined)[] = [];
    for (const isThere of [true, false]) {
      const controller = new AbortController();
      const { clock, limiter } = waitingForBoth({ signal: controller.signal, isThere });
      await clock.advance(12_000);
      const newcomer = track(limiter.acquire({ host: "both.example", scopes: ["a", "b"] }));
      await clock.advance(50);
      controller.abort();
      await clock.advance(50);
      const other = track(limiter.acquire({ host: "new.example", scopes: ["b"] }));
      await clock.advance(1_000);
      expect(newcomer.state).toBe("pending");
      starts.push(other.value?.startedAtMs);
    }
    expect(starts).toEqual([12_100, 12_100]);
  });

  it("while a key it needs is paused, for everybody who has one there, and begins again when that is over", async () => {
    const { clock, limiter } = waitingForBoth();
    track(limiter.acquire({ host: "both2.example", scopes: ["a", "b"] }));
    await clock.advance(12_000);
    expect(limiter.tryAcquire({ host: "new.example", scopes: ["b"] })).toBeUndefined();
    limiter.pause({ host: "new.example", scopes: ["a"] });
    granted(limiter.tryAcquire({ host: "new.example", scopes: ["b"] })).release();
    await clock.advance(500_000);
    granted(limiter.tryAcquire({ host: "new.example", scopes: ["b"] })).release();
    limiter.resume({ host: "new.example", scopes: ["a"] });
    expect(limiter.tryAcquire({ host: "new.example", scopes: ["b"] })).toBeUndefined();
  });

  it("when nobody else needs the key any more that it is stopped at", async () => {
    const { clock, limiter } = rig({ default: { enabled: false }, hosts, scopes: { ...scopes, c: {} } });
    granted(limiter.tryAcquire({ host: "holder.example", scopes: ["a"] }));
    granted(limiter.tryAcquire("slow.example"));
    track(limiter.acquire({ host: "slow.example", scopes: ["b", "c"] }));
    track(limiter.acquire({ host: "both.example", scopes: ["a", "b", "c"] }));
    const controller = new AbortController();
    track(limiter.acquire({ host: "behind.example", scopes: ["a"] }, { signal: controller.signal }));
    await clock.advance(12_000);
    expect(limiter.tryAcquire({ host: "new.example", scopes: ["b"] })).toBeUndefined();
    controller.abort();
    expect(limiter.tryAcquire({ host: "new.example", scopes: ["b"] })).toBeDefined();
  });

  it("and passes to the next of those who have one, in their order", async () => {
    const { clock, limiter } = waitingForBoth();
    const next = track(limiter.acquire({ host: "both2.example", scopes: ["a", "b"] }));
    await clock.advance(12_000);
    const young = track(limiter.acquire({ host: "young.example", scopes: ["b"] }));
    const urgent = track(limiter.acquire({ host: "urgent.example", scopes: ["b"] }, { priority: 5 }));
    await clock.settle();
    expect(urgent.value?.startedAtMs).toBe(12_000);
    urgent.value?.release();
    await clock.advance(1_000);
    expect(limiter.cancelWaiting({ host: "both.example", scopes: ["a", "b"] })).toBe(1);
    await clock.advance(1_000);
    expect([young.state, next.state]).toEqual(["pending", "pending"]);
    expect(limiter.cancelWaiting({ host: "both2.example", scopes: ["a", "b"] })).toBe(1);
    await clock.settle();
    expect(young.value?.startedAtMs).toBe(14_000);
  });
});

it.each([false, true])(
  "starts the better claim of those ready at one instant (somebody gave up: %s)",
  async (gaveUp) => {
    const { clock, limiter } = rig({
      default: { minDelay: "300ms" },
      scopes: { b: { minDelay: "500ms" } },
      global: { concurrency: 1 },
    });
    const first = granted(limiter.tryAcquire("y.example"));
    track(limiter.acquire({ host: "y.example", scopes: ["b"] }, { priority: 2 }));
    const plain = track(limiter.acquire("y.example"));
    const second = track(limiter.acquire({ host: "x.example", scopes: ["b"] }));
    first.release();
    await clock.settle();
    const urgent = track(limiter.acquire("x.example", { priority: 1 }));
    if (gaveUp) comeAndGo(limiter, "y.example", []);
    granted(second.value).release();
    await clock.advance(300);
    // The one of priority 2 waits for b, and wakes those behind it at its host; that does not put them before the urgent one.
    expect([plain.state, urgent.value?.startedAtMs]).toEqual(["pending", 300]);
  },
);

/** Requests for b.example in the order they come: when, the scopes they need, and for how long each holds its place. */
const shortAges: readonly (readonly [number, readonly string[], number])[] = [
  [350, ["u"], 20],
  [751, ["s", "u"], 20],
  [902, ["u"], 200],
  [1013, ["s", "u"], 700],
  [1024, ["u"], 200],
  [1324, ["u"], 1],
  [1674, ["s", "u"], 1],
  [1675, ["s", "u"], 700],
  [1795, ["u"], 700],
  [2227, ["u"], 1],
];

it("moves nobody's start when somebody joins the end of a lane that is old already, and gives up", async () => {
  const play = async (hasComer: boolean): Promise<(number | undefined)[]> => {
    const policy = {
      hosts: { "b.example": { window: "4/s" } },
      scopes: { s: { minDelay: 50 }, u: { rate: { count: 1, per: 300 }, burst: 4 } },
    } as const;
    const { clock, limiter } = rig(policy, { ageing: 200 });
    const asked: Tracked<Permit>[] = [];
    for (const [atMs, needs, heldMs] of shortAges) {
      await clock.advance(atMs - clock.now());
      const request = limiter.acquire({ host: "b.example", scopes: needs });
      asked.push(track(request));
      void request.then((permit) => clock.setTimer(permit.startedAtMs + heldMs, () => permit.release("success")));
    }
    await clock.advance(2327 - clock.now());
    track(limiter.acquire({ host: "c.example", scopes: ["s"] }));
    if (hasComer) comeAndGo(limiter, "b.example", ["s", "u"]);
    await clock.advance(9_000);
    return asked.map(({ value }) => value?.startedAtMs);
  };
  expect(await play(true)).toEqual(await play(false));
});
