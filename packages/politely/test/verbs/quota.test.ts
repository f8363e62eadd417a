import { describe, expect, it } from "vitest";
import type { Limits } from "../../src/index.js";
import { VirtualClock } from "../../src/testing/index.js";
import { granted, keyRig, many, startsOf } from "./support.js";

type Quota = NonNullable<Limits["quota"]>;

const hour = 3_600_000;

const at = (iso: string): { clock: VirtualClock } => ({ clock: new VirtualClock({ wallMs: Date.parse(iso) }) });

const perDay = (count: number, timeZone?: string): Limits => ({
  quota: timeZone === undefined ? { count, per: "day" } : { count, per: "day", timeZone },
});

describe("a quota", () => {
  it("is spent at once if one likes, and comes back on the calendar, all of it", async () => {
    const { clock, limiter } = keyRig(perDay(3), at("2026-01-15T22:30:00Z"));
    const permits = many(7, () => limiter.acquire());
    await clock.advance(25.5 * hour);
    expect(await startsOf(permits)).toEqual([0, 0, 0, 1.5 * hour, 1.5 * hour, 1.5 * hour, 25.5 * hour]);
  });

  it("tells the exact wait and the reason", async () => {
    const { limiter } = keyRig(perDay(1), at("2026-01-15T23:59:59.250Z"));
    await limiter.acquire();
    expect(limiter.check()).toMatchObject({ proceed: false, waitMs: 750 });
    expect(limiter.check().reason).toMatch(/day/);
  });

  const zones: readonly (readonly [string, Quota, string, number])[] = [
    ["an hour in UTC", { count: 1, per: "hour" }, "2026-01-15T10:20:00Z", 40 / 60],
    [
      "an hour where zones are half an hour off",
      { count: 1, per: "hour", timeZone: "Asia/Kolkata" },
      "2026-01-15T10:20:00Z",
      10 / 60,
    ],
    ["a day in Tokyo", { count: 1, per: "day", timeZone: "Asia/Tokyo" }, "2026-01-15T12:00:00Z", 3],
    ["a day in Los Angeles", { count: 1, per: "day", timeZone: "America/Los_Angeles" }, "2026-01-15T12:00:00Z", 20],
    [
      "the day of 23 hours in New York",
      { count: 1, per: "day", timeZone: "America/New_York" },
      "2026-03-08T05:00:00Z",
      23,
    ],
    ["the day of 25 hours in Berlin", { count: 1, per: "day", timeZone: "Europe/Berlin" }, "2026-10-24T22:00:00Z", 25],
    [
      "the day before one without a midnight in Cairo",
      { count: 1, per: "day", timeZone: "Africa/Cairo" },
      "2026-04-23T12:00:00Z",
      10,
    ],
    ["a month in UTC", { count: 1, per: "month" }, "2026-01-31T20:00:00Z", 4],
    ["a short month", { count: 1, per: "month" }, "2026-02-01T00:00:00Z", 28 * 24],
    ["a February of 29 days", { count: 1, per: "month" }, "2028-02-01T00:00:00Z", 29 * 24],
    [
      "the last month of a year in Auckland",
      { count: 1, per: "month", timeZone: "Pacific/Auckland" },
      "2026-12-31T00:00:00Z",
      11,
    ],
    [
      "a month with a change of the clock in Paris",
      { count: 1, per: "month", timeZone: "Europe/Paris" },
      "2026-02-28T23:00:00Z",
      31 * 24 - 1,
    ],
  ];

  it.each(zones)("over %s ends when the calendar says", async (_name, quota, from, hours) => {
    const { clock, limiter } = keyRig({ quota }, at(from));
    const permits = many(2, () => limiter.acquire());
    expect(limiter.check().proceed).toBe(false);
    const lengthMs = Math.round(hours * hour);
    await clock.advance(lengthMs);
    expect(await startsOf(permits)).toEqual([0, lengthMs]);
  });

  it.each([
    ["when the clock goes forward", "2026-03-08T06:30:00Z"],
    ["when the clock goes back, where one hour comes twice", "2026-11-01T04:30:00Z"],
  ])("per hour is one per hour that passes, %s", async (_name, from) => {
    const { clock, limiter } = keyRig({ quota: { count: 1, per: "hour", timeZone: "America/New_York" } }, at(from));
    const permits = many(4, () => limiter.acquire());
    await clock.advance(4 * hour);
    expect(await startsOf(permits)).toEqual([0, 0.5 * hour, 1.5 * hour, 2.5 * hour]);
  });

  it("stays in its period when the wall clock is set back", async () => {
    const { clock, limiter } = keyRig(perDay(1), at("2026-01-16T00:30:00Z"));
    await limiter.acquire();
    clock.shiftWall(-hour);
    expect(limiter.tryAcquire()).toBeUndefined();
    await clock.advance(0.5 * hour);
    expect(limiter.tryAcquire()).toBeUndefined();
    await clock.advance(23.5 * hour);
    expect(limiter.tryAcquire()).toBeUndefined();
    await clock.advance(0.5 * hour);
    expect(limiter.tryAcquire()).toBeDefined();
  });

  it("comes back when the wall clock is set forward into the next period, once", async () => {
    const { clock, limiter } = keyRig(perDay(1), at("2026-01-16T12:00:00Z"));
    await limiter.acquire();
    clock.shiftWall(24 * hour);
    expect(limiter.tryAcquire()).toBeDefined();
    clock.shiftWall(-24 * hour);
    expect(limiter.tryAcquire()).toBeUndefined();
    clock.shiftWall(24 * hour);
    expect(limiter.tryAcquire()).toBeUndefined();
  });

  it("a waiter that was to start at midnight does not start early when the wall clock was set back", async () => {
    const { clock, limiter } = keyRig(perDay(1), at("2026-01-15T23:00:00Z"));
    await limiter.acquire();
    const waiting = limiter.acquire();
    await clock.advance(0.25 * hour);
    clock.shiftWall(-0.5 * hour);
    await clock.advance(1.25 * hour);
    expect((await waiting).startedAtMs).toBe(1.5 * hour);
  });

  it("counts the cost of each request", async () => {
    const { limiter } = keyRig(perDay(10), at("2026-01-15T12:00:00Z"));
    granted(limiter.tryAcquire({ cost: 7 }));
    expect(limiter.tryAcquire({ cost: 4 })).toBeUndefined();
    expect(limiter.tryAcquire({ cost: 3 })).toBeDefined();
    expect(limiter.check()).toMatchObject({ proceed: false, waitMs: 12 * hour });
  });

  it("gives back what was not used, within its period", async () => {
    const { clock, limiter } = keyRig(perDay(1), at("2026-01-15T23:00:00Z"));
    const yesterday = granted(limiter.tryAcquire());
    await clock.advance(2 * hour);
    const today = granted(limiter.tryAcquire());
    yesterday.release("unused");
    expect(limiter.tryAcquire()).toBeUndefined();
    today.release("unused");
    expect(limiter.tryAcquire()).toBeDefined();
  });

  it("holds together with a rate", async () => {
    const { clock, limiter } = keyRig({ minDelay: "1s", ...perDay(2) }, at("2026-01-15T23:00:00Z"));
    const permits = many(4, () => limiter.acquire());
    await clock.advance(2 * hour);
    expect(await startsOf(permits)).toEqual([0, 1_000, hour, hour + 1_000]);
  });
});
