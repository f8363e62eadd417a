import { describe, expect, it } from "vitest";
import type { GetSummary, HostSummary } from "../../src/get/observer.js";
import { summaryLines } from "../../src/view/summaryLines.js";
import { textWidth } from "../../src/view/width.js";
import { plainLook } from "./looks.js";

function host(key: string, changes: Partial<HostSummary> = {}): HostSummary {
  return {
    key,
    requests: 100,
    throttled: 0,
    failed: 0,
    waitedMs: 50_000,
    perSec: 1.98,
    limitPerSec: 2,
    limit: "2/s, concurrency 4",
    ...changes,
  };
}

function unlimited(key: string): HostSummary {
  return { key, requests: 100, throttled: 0, failed: 0, waitedMs: 50_000, perSec: 40, limit: "no limit" };
}

const summary: GetSummary = {
  type: "summary",
  total: 4_000,
  fetched: 3_980,
  unchanged: 12,
  failed: 20,
  left: 0,
  finishedBefore: 0,
  requests: 4_010,
  bytes: 45_200_000,
  tookMs: 2_000_000,
  isStopped: false,
  hosts: [
    unlimited("quick.example.com"),
    host("slow.example.com", { requests: 1_200, waitedMs: 1_080_000 }),
    host("angry.example.com", { throttled: 3, perSec: 0.5 }),
    host("broken.example.com", { failed: 20 }),
    host("once.example.com", { requests: 1, perSec: 0 }),
  ],
};

describe("summaryLines", () => {
  it("says what the run came to, and lists hosts aligned, the worst first", () => {
    expect(summaryLines(summary, plainLook(110))).toEqual([
      "3,980 of 4,000 fetched, 12 unchanged, 20 failed, 4,010 requests, 45.2 MB, 33 min 20 s.",
      "",
      "host                requests  429s  failed  waited    rate  of limit  limit",
      "angry.example.com        100     3       0    50 s   0.5/s       25%  2/s, concurrency 4",
      "broken.example.com       100     0      20    50 s  1.98/s       99%  2/s, concurrency 4",
      "slow.example.com       1,200     0       0  18 min  1.98/s       99%  2/s, concurrency 4",
      "quick.example.com        100     0       0    50 s    40/s            no limit",
      "once.example.com           1     0       0    50 s                    2/s, concurrency 4",
    ]);
  });

  it("names the 20 worst of 200 hosts and counts the others", () => {
    const hosts = Array.from({ length: 200 }, (_, index) => host(`h${index}.example.com`, { requests: index + 1 }));
    const lines = summaryLines({ ...summary, hosts }, plainLook(100));
    expect(lines).toHaveLength(24);
    expect(lines[3]).toMatch(/^h199\.example\.com/);
    expect(lines.at(-2)).toMatch(/^h180\.example\.com/);
    expect(lines.at(-1)).toBe("… and 180 more");
  });

  it("cuts the limit in words first, and leaves it out where there is no room", () => {
    expect(summaryLines(summary, plainLook(78))[3]).toBe(
      "angry.example.com        100     3       0    50 s   0.5/s       25%  2/s, co…",
    );
    const narrow = summaryLines(summary, plainLook(70));
    expect(narrow[2]).toMatch(/of limit$/);
    for (const line of narrow.slice(2)) expect(textWidth(line)).toBeLessThanOrEqual(70);
  });

  it("says what is left when the run was stopped", () => {
    const stopped = { ...summary, isStopped: true, fetched: 980, left: 3_000, hosts: [] };
    expect(summaryLines(stopped, plainLook(80))).toEqual([
      "Stopped: 980 of 4,000 fetched, 3,000 left, 12 unchanged, 20 failed, 4,010 requests, 45.2 MB, 33 min 20 s.",
    ]);
  });

  it("says how to ask for what was finished before, unless something is left", () => {
    const lines = summaryLines({ ...summary, finishedBefore: 3_980, hosts: [] }, plainLook(80));
    expect(lines[1]).toBe("3,980 were finished before and not asked for again; --refresh asks for all of the list.");
    expect(summaryLines({ ...summary, finishedBefore: 1, left: 5, hosts: [] }, plainLook(80))).toHaveLength(1);
  });

  it("has no table when nothing was asked", () => {
    expect(summaryLines({ ...summary, hosts: [host("a.example", { requests: 0 })] }, plainLook(80))).toHaveLength(1);
  });
});
