import { describe, expect, it } from "vitest";
import { limit } from "../../src/index.js";
import { failure, granted, keyRig, many, only, startsOf, track } from "./support.js";

describe("limit", () => {
  it("has the verbs of a limiter without the target", async () => {
    const { clock, limiter, events } = keyRig({ minDelay: "1s" });
    expect(limiter.check()).toEqual({ proceed: true, waitMs: 0 });
    expect(limiter.elapsedMs()).toBe(Number.POSITIVE_INFINITY);
    const permit = await limiter.acquire();
    permit.release("success");
    expect(limiter.tryAcquire()).toBeUndefined();
    expect(limiter.explain()).toMatchObject({ proceed: false, waitMs: 1_000, ahead: 0 });
    const gone = failure(limiter.acquire());
    expect(limiter.cancelWaiting("stop")).toBe(1);
    expect(await gone).toBe("stop");
    limiter.pause("10s");
    limiter.resume();
    await limiter.idle();
    limiter.reset("all");
    expect(await limiter.run(() => "done")).toBe("done");
    await clock.advance(1_000);
    expect(await limiter.wrap((name: string) => name)("wrapped")).toBe("wrapped");
    limiter.configure({ minDelay: "2s" });
    limiter.record("success");
    expect(limiter.check().waitMs).toBe(2_000);
    expect(only(events, "grant").length).toBe(4);
    await limiter.close();
  });

  it("gives every event and permit the same key", async () => {
    const { clock, limiter, events } = keyRig({ minDelay: 10 });
    const permits = await (async () => {
      const all = many(3, () => limiter.acquire());
      await clock.advance(20);
      return Promise.all(all);
    })();
    const keys = new Set([...permits.map((permit) => permit.key), ...events.map((event) => event.key)]);
    expect(keys.size).toBe(1);
    expect(limiter.stats().host).toBe([...keys][0]);
  });

  it("of no limits lets everything go", async () => {
    const { limiter } = keyRig({});
    const starts = await startsOf(many(100, () => limiter.acquire()));
    expect(new Set(starts)).toEqual(new Set([0]));
  });

  it("counts on its own: two of them share nothing", () => {
    const first = keyRig({ window: "1/min" });
    const second = limit({ window: "1/min" }, { clock: first.clock });
    granted(first.limiter.tryAcquire());
    expect(first.limiter.tryAcquire()).toBeUndefined();
    expect(second.tryAcquire()).toBeDefined();
  });

  it("accepts every way to write a duration and a rate", async () => {
    const durations = [
      ["1500ms", 1_500],
      ["1.5s", 1_500],
      ["2m", 120_000],
      ["2min", 120_000],
      ["1h", 3_600_000],
      ["1d", 86_400_000],
      [250, 250],
    ] as const;
    for (const [minDelay, ms] of durations) {
      const { limiter } = keyRig({ minDelay });
      granted(limiter.tryAcquire());
      expect(limiter.check().waitMs).toBe(ms);
    }
    const rates = [
      ["60/min", 1_000],
      ["1/3s", 3_000],
      ["0.5/s", 2_000],
      ["4/s", 250],
      [{ count: 2, per: "1s" }, 500],
      [{ count: 1, per: 750 }, 750],
    ] as const;
    for (const [rate, ms] of rates) {
      const { limiter } = keyRig({ rate });
      granted(limiter.tryAcquire());
      expect(limiter.check().waitMs).toBe(ms);
    }
  });

  it("runs on the machine's own clock where none is given", async () => {
    const limiter = limit({ window: "3/min" });
    const permits = await Promise.all(many(3, () => limiter.acquire()));
    expect(limiter.tryAcquire()).toBeUndefined();
    expect(limiter.check().waitMs).toBeGreaterThan(50_000);
    expect(limiter.elapsedMs()).toBeGreaterThanOrEqual(0);
    const waiting = track(limiter.acquire());
    await limiter.close();
    expect(waiting.state).toBe("failed");
    for (const permit of permits) permit.release();
  });
});
