import fc from "fast-check";
import { type PolicyInput, politely } from "politely";
import { VirtualClock } from "politely/testing";
import { describe, expect, it } from "vitest";
import { seeded } from "../../../../politely/test/laws/seeded.js";
import { HostFeed } from "../../../src/serve/feed/hostFeed.js";
import type { HostRow } from "../../../src/serve/feed/row.js";

function world(policy: PolicyInput, maxHosts = 20_000) {
  const clock = new VirtualClock();
  const limiter = politely(policy, { clock });
  let current = policy;
  const feed = new HostFeed({ clock, limiter, policy: () => current, maxHosts });
  const shown = new Map<string, HostRow>();
  const look = async (): Promise<void> => {
    do {
      const { changed, gone } = await feed.look();
      for (const record of changed) shown.set(record.domain, record.row(feed.moment()));
      for (const key of gone) shown.delete(key);
    } while (feed.hasMore);
  };
  const configure = (next: PolicyInput): void => {
    current = next;
    limiter.configure(next);
  };
  return { clock, limiter, feed, shown, look, configure };
}

describe("a row", () => {
  it("is flowing while requests start, and idle ten seconds later without any event", async () => {
    const { clock, limiter, shown, look } = world({ default: { rate: "2/s", burst: 5 } });
    (await limiter.acquire("a.example")).release("success");
    await look();
    expect(shown.get("a.example")).toMatchObject({ state: "flowing", total: 1, perSecond: 1, allowedPerSecond: 2 });
    expect(shown.get("a.example")).toMatchObject({ limits: "2/s burst 5", lastAt: clock.wall(), nextStartMs: null });
    for (let second = 0; second < 12; second++) {
      await clock.advance(1_000);
      await look();
    }
    expect(shown.get("a.example")).toMatchObject({ state: "idle", perSecond: 0, total: 1 });
  });

  it("says what the next start waits for, and for how long", async () => {
    const { clock, limiter, shown, look } = world({ default: { rate: "1/10s" } });
    (await limiter.acquire("a.example")).release("success");
    void limiter.acquire("a.example");
    void limiter.acquire("a.example");
    await clock.advance(4_000);
    await look();
    const row = shown.get("a.example");
    expect(row).toMatchObject({ state: "waiting", waiting: 2, until: null });
    expect(row?.nextStartMs).toBe(6_000);
    expect(row?.reason).toContain("a.example");
  });

  it("foresees the first start of a lane, whatever limit holds it and however many wait", async () => {
    const limits = fc.constantFrom<PolicyInput["default"]>(
      { minDelay: "3s" },
      { rate: "1/4s" },
      { rate: "2/s", burst: 3 },
      { window: "3/20s" },
      { minDelay: "1s", rate: "10/min", burst: 2, window: ["2/5s", "5/30s"] },
    );
    await fc.assert(
      fc.asyncProperty(
        limits,
        fc.integer({ min: 2, max: 12 }),
        fc.nat(60_000),
        fc.boolean(),
        async (own, count, atMs, is429) => {
          const { clock, limiter, look, shown } = world({ default: own ?? {} });
          const starts: number[] = [];
          for (let each = 0; each < count; each++) {
            void limiter.acquire("a.example").then((permit) => {
              starts.push(clock.now());
              permit.release(is429 && starts.length === 1 ? { kind: "rate_limited", retryAfterMs: 7_000 } : "success");
            });
          }
          await clock.advance(atMs);
          await look();
          const row = shown.get("a.example");
          const seenMs = clock.now();
          const before = starts.length;
          if (row === undefined || row.waiting === 0) return;
          await clock.advance(120_000);
          expect(Math.abs((row.nextStartMs ?? -1) - (starts[before] - seenMs))).toBeLessThanOrEqual(1);
        },
      ),
      seeded(200),
    );
  });

  it("cools down until the site's time is over, and then no more", async () => {
    const { clock, limiter, shown, look } = world({ default: { rate: "10/s" } });
    (await limiter.acquire("a.example")).release({ kind: "rate_limited", retryAfterMs: 30_000 });
    await look();
    expect(shown.get("a.example")).toMatchObject({ state: "cooling", throttled: 1, until: clock.wall() + 30_000 });
    await clock.advance(30_500);
    await look();
    expect(shown.get("a.example")).toMatchObject({ state: "idle", until: null });
  });

  it("is paused until resumed, also when everything is, and a pause may end by itself", async () => {
    const { clock, limiter, shown, look } = world({ default: { rate: "10/s" } });
    (await limiter.acquire("a.example")).release("success");
    limiter.pause("b.example", 5_000);
    limiter.pause();
    await look();
    expect(shown.get("a.example")).toMatchObject({ state: "paused", until: null });
    limiter.resume();
    limiter.pause("b.example", 5_000);
    await look();
    expect(shown.get("a.example")?.state).toBe("flowing");
    expect(shown.get("b.example")).toMatchObject({ state: "paused", until: clock.wall() + 5_000 });
    await clock.advance(5_500);
    await look();
    expect(shown.get("b.example")).toMatchObject({ state: "idle", until: null });
  });

  it("has the new limits after the policy was changed, `global` and presets included", async () => {
    const { limiter, shown, look, configure } = world({ default: { rate: "2/s" } });
    (await limiter.acquire("a.example")).release("success");
    (await limiter.acquire("crates.io")).release("success");
    await look();
    expect(shown.get("a.example")).toMatchObject({ limits: "2/s", allowedPerSecond: 2 });
    configure({ hosts: { "a.example": { minDelay: "4s" } }, global: { rate: "30/min" }, presets: true });
    await look();
    expect(shown.get("a.example")?.allowedPerSecond).toBe(0.25);
    expect(shown.get("a.example")?.limits).toContain("4s apart");
    expect(shown.get("crates.io")?.limits).toContain("1/s");
  });

  it("has no pace from a quota, which allows any speed until it is used up", async () => {
    const { limiter, shown, look } = world({ default: { quota: { count: 100, per: "day" } } });
    (await limiter.acquire("a.example")).release("success");
    await look();
    expect(shown.get("a.example")).toMatchObject({ allowedPerSecond: null, limits: "100/day quota" });
  });
});

describe("the feed", () => {
  it("keeps so many hosts and tells which have left, the least recently active first", async () => {
    const { clock, limiter, shown, look, feed } = world({ default: { rate: "10/s" } }, 3);
    for (const host of ["a.example", "b.example", "c.example", "a.example", "d.example"]) {
      (await limiter.acquire(host)).release("success");
      await clock.advance(1_000);
      await look();
    }
    expect([...shown.keys()].sort()).toEqual(["a.example", "c.example", "d.example"]);
    expect(feed.hostCount).toBe(3);
    expect(Object.values(feed.totals().hosts).reduce((sum, count) => sum + count)).toBe(3);
  });

  it("counts an answer 429 once in the timeline, whether released, reported or recorded", async () => {
    const { clock, limiter, feed, look } = world({ default: { rate: "10/s", burst: 10 } });
    (await limiter.acquire("released.example")).release({ status: 429 });
    (await limiter.acquire("worded.example")).release("rate_limited");
    const permit = await limiter.acquire("reported.example");
    permit.report({ status: 429, headers: { "retry-after": "3" } });
    permit.release();
    limiter.record("recorded.example", "rate_limited");
    await look();
    await clock.advance(1_000);
    const { starts, throttled, fromMs } = feed.timeline();
    expect([starts.at(-2), throttled.at(-2), starts.at(-1)]).toEqual([4, 4, 0]);
    expect(starts).toHaveLength(120);
    expect(fromMs).toBe(clock.wall() - 119_000);
    for (const { domain, seconds } of feed.records()) {
      expect([domain, seconds.lists(clock.now()).throttled.at(-2)]).toEqual([domain, 1]);
    }
  });

  it("adds up what hosts at work may do, and knows no sum where one of them has no limit", async () => {
    const { limiter, feed, look } = world({ default: { rate: "2/s" }, hosts: { "free.example": { concurrency: 9 } } });
    for (const host of ["a.example", "b.example"]) (await limiter.acquire(host)).release("success");
    await look();
    expect(feed.timeline().allowedPerSecond).toBe(4);
    (await limiter.acquire("free.example")).release("success");
    await look();
    expect(feed.timeline().allowedPerSecond).toBeNull();
  });

  it("shows what the limiter says, whatever happened before", async () => {
    const step = fc.oneof(
      fc.record({ do: fc.constant("ask" as const), host: fc.nat(3), answerMs: fc.nat(2_000), answer: fc.nat(9) }),
      fc.record({
        do: fc.constantFrom("pause" as const, "resume" as const, "cancel" as const),
        host: fc.nat(4),
        ms: fc.nat(4_000),
      }),
      fc.record({ do: fc.constant("advance" as const), ms: fc.nat(3_000) }),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
        const { clock, limiter, shown, look, feed } = world({ default: { rate: "1/s", burst: 2, cooldown: "4s" } });
        const pausedUntil = new Map<string, number>();
        let allUntilMs = 0;
        for (const each of steps) {
          const host = "host" in each ? `h${each.host}.example` : "";
          const isAll = "host" in each && each.host === 4;
          if (each.do === "ask") {
            const release = (permit: { release(outcome: "rate_limited" | "success"): void }): void =>
              void clock.setTimer(clock.now() + each.answerMs, () =>
                permit.release(each.answer === 0 ? "rate_limited" : "success"),
              );
            limiter.acquire(host).then(release, () => undefined);
          } else if (each.do === "advance") await clock.advance(each.ms);
          else if (each.do === "cancel") limiter.cancelWaiting(isAll ? undefined : host);
          else if (each.do === "pause") {
            limiter.pause(isAll ? undefined : host, each.ms + 1);
            if (isAll) allUntilMs = clock.now() + each.ms + 1;
            else pausedUntil.set(host, clock.now() + each.ms + 1);
          } else {
            limiter.resume(isAll ? undefined : host);
            if (isAll) pausedUntil.clear();
            if (isAll) allUntilMs = 0;
            else pausedUntil.delete(host);
          }
          if (each.do === "advance") await look();
        }
        await clock.advance(500);
        await look();
        for (const stats of limiter.stats()) {
          const row = shown.get(stats.host);
          const heldMs = Math.max(allUntilMs, pausedUntil.get(stats.host) ?? 0) - clock.now();
          const sinceMs = clock.wall() - (stats.lastRequestAt?.getTime() ?? 0);
          const isMoving = stats.inFlight > 0 || sinceMs < 10_000;
          const rest = stats.waiting > 0 ? "waiting" : isMoving ? "flowing" : "idle";
          // The row is from a turn of half a second: what ends in between may be shown a turn longer.
          const isSure = Math.abs(heldMs) > 1_000 && (stats.cooldownMs === 0 || stats.cooldownMs > 1_000);
          const wasMoving = rest === "idle" && sinceMs < 11_000 ? ["flowing"] : [];
          const held = heldMs > 0 ? ["paused"] : stats.cooldownMs > 0 ? ["cooling"] : [rest, "cooling", ...wasMoving];
          expect(isSure ? held : [...held, rest, ...wasMoving, "paused", "cooling"]).toContain(row?.state);
          expect(row).toMatchObject({ waiting: stats.waiting, inFlight: stats.inFlight, total: stats.totalRequests });
          expect(row?.throttled).toBe(stats.throttledRequests);
        }
        const rows = [...shown.values()];
        expect(feed.totals().waiting).toBe(rows.reduce((sum, { waiting }) => sum + waiting, 0));
        expect(Object.values(feed.totals().hosts).reduce((sum, count) => sum + count)).toBe(rows.length);
      }),
      seeded(150),
    );
  });
});
