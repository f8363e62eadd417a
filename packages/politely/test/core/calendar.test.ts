import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { WallCalendar } from "../../src/core/calendar.js";
import type { QuotaRule } from "../../src/core/rule.js";
import { seeded } from "../laws/seeded.js";

type Per = QuotaRule["per"];

function quota(per: Per, timeZone: string): QuotaRule {
  return { count: 1, per, timeZone };
}

/** First and last instant of the period that holds `at`, as text; the last one is the first of the next. */
function bounds(per: Per, timeZone: string, at: string): [string, string] {
  const { startsAtMs, endsAtMs } = new WallCalendar(() => 0).periodAt(quota(per, timeZone), Date.parse(at));
  return [startsAtMs, endsAtMs].map((ms) => new Date(ms).toISOString().replace(":00.000Z", "Z")) as [string, string];
}

const hourMs = 3_600_000;

describe("periods", () => {
  it.each([
    ["hour", "UTC", "2026-03-01T10:20:30Z", "2026-03-01T10:00Z", "2026-03-01T11:00Z"],
    ["hour", "UTC", "2026-03-01T10:00:00Z", "2026-03-01T10:00Z", "2026-03-01T11:00Z"],
    ["day", "UTC", "2026-02-28T23:59:59.999Z", "2026-02-28T00:00Z", "2026-03-01T00:00Z"],
    ["day", "UTC", "2028-02-29T12:00:00Z", "2028-02-29T00:00Z", "2028-03-01T00:00Z"],
    ["month", "UTC", "2026-12-31T23:59:59Z", "2026-12-01T00:00Z", "2027-01-01T00:00Z"],
    ["month", "UTC", "2028-02-10T00:00:00Z", "2028-02-01T00:00Z", "2028-03-01T00:00Z"],
    ["day", "Asia/Tokyo", "2026-03-01T14:59:59Z", "2026-02-28T15:00Z", "2026-03-01T15:00Z"],
    ["month", "Asia/Tokyo", "2025-12-31T15:00:00Z", "2025-12-31T15:00Z", "2026-01-31T15:00Z"],
    ["month", "America/Los_Angeles", "2026-03-15T00:00:00Z", "2026-03-01T08:00Z", "2026-04-01T07:00Z"],
    ["day", "Pacific/Kiritimati", "2026-01-01T09:59:59Z", "2025-12-31T10:00Z", "2026-01-01T10:00Z"],
  ] as const)("of a %s in %s around %s run from %s to %s", (per, timeZone, at, start, end) => {
    expect(bounds(per, timeZone, at)).toEqual([start, end]);
  });

  it.each([
    ["a day of 23 hours in spring", "day", "Europe/Berlin", "2026-03-29T12:00:00Z", 23],
    ["a day of 25 hours in autumn", "day", "Europe/Berlin", "2026-10-25T12:00:00Z", 25],
    ["a day of 23 hours that has no midnight", "day", "America/Sao_Paulo", "2017-10-15T12:00:00Z", 23],
    ["a day of 25 hours that has its last hour twice", "day", "America/Sao_Paulo", "2018-02-17T12:00:00Z", 25],
    ["a day of 23 hours that has no midnight", "day", "Africa/Cairo", "2024-04-26T12:00:00Z", 23],
    ["a day of 23.5 hours", "day", "Australia/Lord_Howe", "2025-10-05T01:00:00Z", 23.5],
    ["a month without one hour", "month", "Europe/Berlin", "2026-03-15T12:00:00Z", 31 * 24 - 1],
    ["the hour that comes twice is two periods", "hour", "Europe/Berlin", "2026-10-25T00:30:00Z", 1],
    ["and its second time is one of an hour too", "hour", "Europe/Berlin", "2026-10-25T01:30:00Z", 1],
    [
      "an hour from which half an hour is skipped is as long as what remains",
      "hour",
      "Australia/Lord_Howe",
      "2025-10-04T15:40:00Z",
      0.5,
    ],
  ] as const)("follow the local clock: %s (%s, %s, %s)", (_, per, timeZone, at, hours) => {
    const { startsAtMs, endsAtMs } = new WallCalendar(() => 0).periodAt(quota(per, timeZone), Date.parse(at));
    expect((endsAtMs - startsAtMs) / hourMs).toBe(hours);
  });

  it("begin with the first instant that exists when midnight does not", () => {
    // 23:59:59 is followed by 01:00:00.
    expect(bounds("day", "America/Sao_Paulo", "2017-10-15T03:00:00Z")).toEqual([
      "2017-10-15T03:00Z",
      "2017-10-16T02:00Z",
    ]);
    expect(bounds("day", "Africa/Cairo", "2024-04-25T22:00:00Z")).toEqual(["2024-04-25T22:00Z", "2024-04-26T21:00Z"]);
  });

  it.each([
    ["Asia/Kolkata", "2026-03-01T10:29:59Z", "2026-03-01T09:30Z", "2026-03-01T10:30Z"],
    ["Asia/Kathmandu", "2026-03-01T10:14:59Z", "2026-03-01T09:15Z", "2026-03-01T10:15Z"],
    ["America/St_Johns", "2026-03-01T10:30:00Z", "2026-03-01T10:30Z", "2026-03-01T11:30Z"],
    ["Pacific/Chatham", "2026-03-01T10:15:00Z", "2026-03-01T10:15Z", "2026-03-01T11:15Z"],
  ])("of an hour begin when the local clock shows a full hour in %s", (timeZone, at, start, end) => {
    expect(bounds("hour", timeZone, at)).toEqual([start, end]);
  });

  it("end where the next one begins also when a zone skips a whole day", () => {
    // There was no 30 December 2011 in Samoa.
    expect(bounds("day", "Pacific/Apia", "2011-12-30T09:00:00Z")).toEqual(["2011-12-29T10:00Z", "2011-12-30T10:00Z"]);
    expect(bounds("day", "Pacific/Apia", "2011-12-30T11:00:00Z")).toEqual(["2011-12-30T10:00Z", "2011-12-31T10:00Z"]);
  });

  it.each(["UTC", "Europe/Berlin", "America/Sao_Paulo"])("exist in the far future in %s", (timeZone) => {
    for (const year of [9_999, 100_000]) {
      const wallMs = Date.UTC(year, 6, 15, 12, 30);
      for (const per of ["hour", "day", "month"] as const) {
        const { startsAtMs, endsAtMs } = new WallCalendar(() => 0).periodAt(quota(per, timeZone), wallMs);
        expect(startsAtMs).toBeLessThanOrEqual(wallMs);
        expect(endsAtMs).toBeGreaterThan(wallMs);
      }
    }
  });

  it("hold readings with fractions of a millisecond", () => {
    const endMs = Date.parse("2026-03-01T15:00:00Z");
    const tokyo = quota("day", "Asia/Tokyo");
    const calendar = new WallCalendar(() => 0);
    expect(calendar.periodAt(tokyo, endMs - 0.001).endsAtMs).toBe(endMs);
    expect(new WallCalendar(() => 0).periodAt(tokyo, endMs + 0.25).startsAtMs).toBe(endMs);
  });

  it("only grow: a wall clock that is set back stays in the one it was in", () => {
    const calendar = new WallCalendar(() => 0);
    const daily = quota("day", "Europe/Berlin");
    const present = calendar.periodAt(daily, Date.parse("2026-03-01T12:00:00Z"));
    expect(calendar.periodAt(daily, Date.parse("2025-03-01T12:00:00Z"))).toEqual(present);
    expect(calendar.periodAt(daily, present.endsAtMs).startsAtMs).toBe(present.endsAtMs);
  });
});

describe("a period", () => {
  const zones = [
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "America/Sao_Paulo",
    "America/Santiago",
    "America/St_Johns",
    "Africa/Cairo",
    "Asia/Kolkata",
    "Asia/Kathmandu",
    "Australia/Lord_Howe",
    "Pacific/Chatham",
  ];

  it.each(zones)("begins where the one before ends, through the days when %s changes its clocks", (timeZone) => {
    for (const [per, count] of [
      ["month", 26],
      ["day", 60],
      ["hour", 60],
    ] as const) {
      const calendar = new WallCalendar(() => 0);
      const each = quota(per, timeZone);
      let period = calendar.periodAt(each, Date.parse("2017-10-14T12:00:00Z"));
      for (let number = 0; number < count; number += 1) {
        const next = calendar.periodAt(each, period.endsAtMs);
        expect(next.startsAtMs).toBe(period.endsAtMs);
        period = next;
      }
    }
  });

  it("is that of every instant inside, and of none outside, at any time in any zone", () => {
    const anyInstant = fc.integer({ min: Date.UTC(2012, 0), max: Date.UTC(2100, 0) });
    const anyPer = fc.constantFrom("hour" as const, "day" as const, "month" as const);
    fc.assert(
      fc.property(fc.constantFrom(...zones), anyPer, anyInstant, (timeZone, per, wallMs) => {
        const each = quota(per, timeZone);
        const period = new WallCalendar(() => 0).periodAt(each, wallMs);
        const { startsAtMs, endsAtMs } = period;
        expect(startsAtMs).toBeLessThanOrEqual(wallMs);
        expect(endsAtMs).toBeGreaterThan(wallMs);
        const fresh = (ms: number) => new WallCalendar(() => 0).periodAt(each, ms);
        expect([startsAtMs, endsAtMs - 1].map(fresh)).toEqual([period, period]);
        expect([fresh(startsAtMs - 1).endsAtMs, fresh(endsAtMs).startsAtMs]).toEqual([startsAtMs, endsAtMs]);
      }),
      seeded(60),
    );
  });

  it("is not mixed up between zones and lengths by one calendar", () => {
    const calendar = new WallCalendar(() => 0);
    const wallMs = Date.parse("2026-03-01T15:00:00Z");
    const asked = [quota("day", "UTC"), quota("day", "Asia/Tokyo"), quota("hour", "UTC"), quota("day", "UTC")];
    const starts = asked.map((each) => new Date(calendar.periodAt(each, wallMs).startsAtMs).toISOString().slice(0, 13));
    expect(starts).toEqual(["2026-03-01T00", "2026-03-01T15", "2026-03-01T15", "2026-03-01T00"]);
  });
});
