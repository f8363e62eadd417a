import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parseRobots } from "../../../src/http/robots/index.js";
import { msUntilGapChanges, msUntilOpen, readRequestRate, robotsGapMs } from "../../../src/http/robots/pace.js";
import { seeded } from "../../laws/seeded.js";

const minuteMs = 60_000;
const dayMs = 86_400_000;
const midnightMs = Date.UTC(2026, 2, 1);

function at(time: string): number {
  return midnightMs + (Number(time.slice(0, 2)) * 60 + Number(time.slice(2))) * minuteMs;
}

/** Whether a minute of the day is within the hours, by looking at the clock. */
function isOpen(start: number, end: number, wallMs: number): boolean {
  const date = new Date(wallMs);
  const now = date.getUTCHours() * 60 + date.getUTCMinutes();
  const last = end === 1_439 ? 1_440 : end;
  return start < last ? now >= start && now < last : now >= start || now < last;
}

/** What one agent is told by lines under its name. */
function told(...lines: string[]): { delay: number | null; rate: unknown; time: unknown } {
  const robots = parseRobots(["User-agent: a", ...lines].join("\n"));
  return { delay: robots.crawlDelaySec("a"), rate: robots.requestRate("a"), time: robots.visitTime("a") };
}

describe("Crawl-delay", () => {
  it.each([
    ["0", 0],
    ["10", 10],
    [".5", 0.5],
    ["0.25", 0.25],
    ["5.", 5],
    ["007", 7],
    ["86400", 86_400],
    ["9".repeat(400), Number.MAX_SAFE_INTEGER],
  ])("of %s is read", (value, delay) => {
    expect(told(`Crawl-delay: ${value}`).delay).toBe(delay);
  });

  it.each([
    "",
    ".",
    "-1",
    "+1",
    "1e3",
    "0x10",
    "1,5",
    "5s",
    "5 10",
    "Infinity",
    "NaN",
    "1.2.3",
    "１０",
    `${"1".repeat(9_999)}x`,
  ])("of %j is ignored", (value) => {
    expect(told(`Crawl-delay: ${value}`).delay).toBeNull();
    expect(told("Crawl-delay: 3", `Crawl-delay: ${value}`).delay).toBe(3);
  });

  it("is the longest that is said to the agent, in one group and in several", () => {
    expect(told("Crawl-delay: 5", "Crawl-delay: 10", "Crawl-delay: 2").delay).toBe(10);
    expect(told("Crawl-delay: 5", "Disallow: /", "User-agent: A", "Crawl-delay: 7").delay).toBe(7);
  });

  it("is for the user-agent lines right above it, also where agents share their rules", () => {
    const robots = parseRobots(
      "User-agent: a\nCrawl-delay: 10\nUser-agent: b\nSitemap: x\nUser-agent: c\nCrawl-delay: 1\nUser-agent: *\nDisallow: /x\nCrawl-delay: 5",
    );
    expect(["a", "b", "c", "d"].map((agent) => robots.crawlDelaySec(agent))).toEqual([10, 1, 1, 5]);
    expect(["a", "b", "c", "d"].map((agent) => robots.isAllowed(agent, "/x"))).toEqual([false, false, false, false]);
  });

  it("for everybody is not for an agent with lines of its own", () => {
    const robots = parseRobots("User-agent: *\nCrawl-delay: 10\nUser-agent: a\nDisallow:\n");
    expect([robots.crawlDelaySec("a"), robots.crawlDelaySec("b")]).toEqual([null, 10]);
  });
});

describe("Request-rate", () => {
  it.each<[string, object]>([
    ["3/15", { requests: 3, seconds: 15 }],
    ["1/10s", { requests: 1, seconds: 10 }],
    ["100/15M", { requests: 100, seconds: 900 }],
    ["9000/1d", { requests: 9_000, seconds: 86_400 }],
    ["1 / 5", { requests: 1, seconds: 5 }],
    ["1/10s 1820-1940", { requests: 1, seconds: 10, start: "1820", end: "1940" }],
    ["1/2h 22:00 - 06:00", { requests: 1, seconds: 7_200, start: "2200", end: "0600" }],
  ])("of %s is read", (value, rate) => {
    expect(told(`Request-rate: ${value}`).rate).toStrictEqual(rate);
  });

  it.each([
    "",
    "10",
    "/5",
    "5/",
    "0/5",
    "5/0",
    "-1/5",
    "1.5/5",
    "1/5w",
    "1/5 noon",
    "1/5 2500-2600",
    "1/s",
    "a/b",
    "1/2/3",
  ])("of %j is ignored", (value) => {
    expect(readRequestRate(value)).toBeNull();
    expect(told(`Request-rate: ${value}`).rate).toBeNull();
  });

  it("is the slowest that is said to the agent", () => {
    expect(told("Request-rate: 1/10", "Request-rate: 10/60", "Request-rate: 2/15").rate).toEqual({
      requests: 1,
      seconds: 10,
    });
  });
});

describe("Visit-time", () => {
  it.each([
    ["0100-0445", "0100", "0445"],
    ["0200 0630", "0200", "0630"],
    ["2200 - 0600", "2200", "0600"],
    ["00:00-24:00", "0000", "2400"],
  ])("of %s is read", (value, start, end) => {
    expect(told(`Visit-time: ${value}`).time).toStrictEqual({ start, end });
  });

  it.each(["", "0100", "0100-", "100-445", "2400-0100", "0160-0200", "2500-0100", "0100-2401", "01000200", "a-b"])(
    "of %j is ignored",
    (value) => {
      expect(told(`Visit-time: ${value}`).time).toBeNull();
    },
  );

  it("is the first that is said to the agent", () => {
    expect(told("Visit-time: soon", "Visit-time: 0100-0200", "Visit-time: 0300-0400").time).toEqual({
      start: "0100",
      end: "0200",
    });
  });
});

describe("msUntilOpen", () => {
  it.each([
    ["0200", "0630", "0200", 0],
    ["0200", "0630", "0629", 0],
    ["0200", "0630", "0159", 1],
    ["0200", "0630", "0630", 19.5 * 60],
    ["2200", "0600", "2200", 0],
    ["2200", "0600", "0000", 0],
    ["2200", "0600", "0559", 0],
    ["2200", "0600", "0600", 16 * 60],
    ["0000", "0000", "1234", 0],
    ["0500", "0500", "0459", 0],
    ["0000", "2400", "2359", 0],
    ["0000", "2359", "2359", 0],
    ["1200", "2400", "1159", 1],
    ["1200", "2400", "0000", 12 * 60],
  ])("for %s to %s at %s is %d minutes", (start, end, time, minutes) => {
    expect(msUntilOpen({ start, end }, at(time))).toBe(minutes * minuteMs);
  });

  it("is whole, rounded up, and 0 where nothing is asked", () => {
    expect(msUntilOpen({ start: "0200", end: "0630" }, at("0200") - 0.25)).toBe(1);
    expect(msUntilOpen({ start: "0200", end: "0630" }, at("0630") - 0.25)).toBe(0);
    expect(msUntilOpen(null, at("0000"))).toBe(0);
  });

  it("refuses what is no time", () => {
    expect(() => msUntilOpen({ start: "0200", end: "0630" }, Number.NaN)).toThrow("milliseconds since 1970; got NaN");
  });

  it("leads to the first instant within the hours, at any time", () => {
    const minute = fc.integer({ min: 0, max: 1_439 });
    const text = (value: number): string =>
      `${Math.floor(value / 60)}`.padStart(2, "0") + `${value % 60}`.padStart(2, "0");
    fc.assert(
      fc.property(minute, minute, fc.integer({ min: -dayMs * 400, max: 4e12 }), (start, end, wallMs) => {
        const hours = { start: text(start), end: text(end) };
        const waitMs = msUntilOpen(hours, wallMs);
        expect(waitMs === 0).toBe(isOpen(start, end, wallMs));
        expect(waitMs >= 0 && waitMs < dayMs).toBe(true);
        expect(isOpen(start, end, wallMs + waitMs)).toBe(true);
        if (waitMs > 0) expect(isOpen(start, end, wallMs + waitMs - 1)).toBe(false);
      }),
      seeded(3_000),
    );
  });
});

describe("robotsGapMs", () => {
  const none = { crawlDelaySec: null, requestRate: null };

  it.each<[number | null, { requests: number; seconds: number } | null, number]>([
    [null, null, 0],
    [0, null, 0],
    [1.5, null, 1_500],
    [0.07, null, 70],
    [0.0001, null, 1],
    [null, { requests: 3, seconds: 15 }, 5_000],
    [null, { requests: 3, seconds: 10 }, 3_334],
    [null, { requests: 7, seconds: 1 }, 143],
    [10, { requests: 1, seconds: 5 }, 10_000],
    [2, { requests: 1, seconds: 5 }, 5_000],
    [Number.MAX_SAFE_INTEGER, null, Number.MAX_SAFE_INTEGER],
  ])("for a delay of %s s and a rate of %j is %d ms", (crawlDelaySec, requestRate, gapMs) => {
    expect(robotsGapMs({ crawlDelaySec, requestRate }, at("1200"))).toBe(gapMs);
  });

  it("of whole milliseconds is just that, however the delay is written", () => {
    for (let ms = 0; ms <= 20_000; ms++) {
      expect(robotsGapMs({ ...none, crawlDelaySec: ms / 1_000 }, 0)).toBe(ms);
    }
  });

  it("counts a rate with hours within them only", () => {
    const requestRate = { requests: 1, seconds: 60, start: "0800", end: "1700" };
    expect(robotsGapMs({ ...none, requestRate }, at("0759"))).toBe(0);
    expect(robotsGapMs({ ...none, requestRate }, at("0800"))).toBe(60_000);
    expect(robotsGapMs({ crawlDelaySec: 4, requestRate }, at("1700"))).toBe(4_000);
    expect(robotsGapMs({ crawlDelaySec: 4, requestRate }, at("1659"))).toBe(60_000);
  });
});

describe("msUntilGapChanges", () => {
  const perMinute = { requests: 1, seconds: 60 };

  it.each([
    ["0759", 1],
    ["0800", 9 * 60],
    ["1659", 1],
    ["1700", 15 * 60],
  ])("at %s is %d minutes for hours from 0800 to 1700", (time, minutes) => {
    const requestRate = { ...perMinute, start: "0800", end: "1700" };
    expect(msUntilGapChanges({ crawlDelaySec: 4, requestRate }, at(time))).toBe(minutes * minuteMs);
  });

  it.each<[string, number | null, object | null]>([
    ["without a rate", 4, null],
    ["without hours", null, perMinute],
    ["for the whole day", null, { ...perMinute, start: "0000", end: "2359" }],
    ["for a Crawl-delay that is as long", 60, { ...perMinute, start: "0800", end: "1700" }],
  ])("is never %s", (_name, crawlDelaySec, requestRate) => {
    const pace = { crawlDelaySec, requestRate: requestRate as typeof perMinute | null };
    expect(msUntilGapChanges(pace, at("0900"))).toBe(Number.POSITIVE_INFINITY);
  });

  it("leads to the first instant with another gap, at any time", () => {
    const minute = fc.integer({ min: 0, max: 1_438 });
    const text = (value: number): string =>
      `${Math.floor(value / 60)}`.padStart(2, "0") + `${value % 60}`.padStart(2, "0");
    fc.assert(
      fc.property(minute, minute, fc.integer({ min: -dayMs * 400, max: 4e12 }), (start, end, wallMs) => {
        fc.pre(start !== end);
        const pace = { crawlDelaySec: 1, requestRate: { ...perMinute, start: text(start), end: text(end) } };
        const waitMs = msUntilGapChanges(pace, wallMs);
        const gapMs = robotsGapMs(pace, wallMs);
        expect(robotsGapMs(pace, wallMs + waitMs)).not.toBe(gapMs);
        expect(robotsGapMs(pace, wallMs + waitMs - 1)).toBe(gapMs);
        expect(robotsGapMs(pace, wallMs + Math.floor(waitMs / 2))).toBe(gapMs);
      }),
      seeded(3_000),
    );
  });
});
