import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { WindowRule } from "../../src/core/rule.js";
import { NO_LOG, WindowLogs } from "../../src/scheduler/windowLogs.js";
import { NaiveWindow } from "../core/naiveWindow.js";
import { seeded } from "../laws/seeded.js";

const rule: WindowRule = { count: 100, perUs: 1_000_000, grainUs: 1 };

describe("no log", () => {
  it("has everything to spare, but for what is in flight", () => {
    const logs = new WindowLogs();
    expect(logs.used(NO_LOG, rule, 5)).toBe(0);
    expect(logs.readyAt(NO_LOG, rule, 5, 100, 0)).toBe(5);
    expect(logs.readyAt(NO_LOG, rule, 5, 99, 1)).toBe(5);
    expect(logs.readyAt(NO_LOG, rule, 5, 100, 1)).toBe(Number.POSITIVE_INFINITY);
  });

  it("can be adjusted, copied and released without anything happening", () => {
    const logs = new WindowLogs();
    logs.adjust(NO_LOG, rule, 5, -1, 5);
    logs.release(NO_LOG);
    expect(logs.copy(NO_LOG, rule, rule)).toBe(NO_LOG);
  });
});

describe("the logs of many keys", () => {
  it("grow side by side through a hundred starts each and lose none", () => {
    const logs = new WindowLogs();
    const handles = Array.from({ length: 300 }, () => NO_LOG);
    for (let start = 0; start < 100; start += 1) {
      handles.forEach((handle, key) => {
        handles[key] = logs.append(handle, rule, 1_000 * start + key, 1);
      });
    }
    expect(new Set(handles).size).toBe(300);
    handles.forEach((handle, key) => {
      expect(logs.used(handle, rule, 100_000)).toBe(100);
      expect(logs.readyAt(handle, rule, 100_000, 1, 0)).toBe(key + rule.perUs);
      expect(logs.readyAt(handle, rule, 100_000, 100, 0)).toBe(99_000 + key + rule.perUs);
    });
  });

  it("use the parts of those released again, and start over when all are", () => {
    const logs = new WindowLogs();
    const kept = logs.append(NO_LOG, rule, 0, 1);
    const first = logs.append(NO_LOG, rule, 0, 1);
    logs.release(first);
    const second = logs.append(NO_LOG, rule, 7, 3);
    expect(second).toBe(first);
    expect(logs.used(second, rule, 8)).toBe(3);
    logs.release(kept);
    logs.release(second);
    expect(logs.append(NO_LOG, rule, 9, 1)).toBe(kept);
  });

  it("do not grow when keys come and go", () => {
    const logs = new WindowLogs();
    const kept = logs.append(NO_LOG, rule, 0, 1);
    let highest = 0;
    for (let key = 0; key < 5_000; key += 1) {
      let handle = NO_LOG;
      for (let start = 0; start < 20; start += 1) handle = logs.append(handle, rule, start, 1);
      highest = Math.max(highest, handle);
      logs.release(handle);
    }
    expect(highest).toBeLessThan(200);
    expect(logs.used(kept, rule, 1)).toBe(1);
  });

  it("do not grow by starts that are returned, of which nothing is kept", () => {
    const logs = new WindowLogs();
    let handle = logs.append(NO_LOG, rule, 0, 1);
    let highest = handle;
    for (let nowUs = 2; nowUs < 40_000; nowUs += 2) {
      // The one before is returned once it is no longer the newest.
      handle = logs.append(handle, rule, nowUs, 1);
      logs.adjust(handle, rule, nowUs - 2, -1, nowUs);
      highest = Math.max(highest, handle);
    }
    expect(logs.used(handle, rule, 40_000)).toBe(1);
    expect(highest).toBeLessThan(100);
  });

  it("do not grow by recorded starts far beyond the limit", () => {
    const logs = new WindowLogs();
    let handle = NO_LOG;
    let highest = 0;
    for (let nowUs = 0; nowUs < 50_000; nowUs += 1) {
      handle = logs.append(handle, { ...rule, count: 10 }, nowUs, 1);
      highest = Math.max(highest, handle);
    }
    expect(highest).toBeLessThan(300);
    expect(logs.readyAt(handle, { ...rule, count: 10 }, 50_000, 1, 0)).toBe(49_990 + rule.perUs);
  });

  it("hold no more pairs than a grouped window has grains", () => {
    const logs = new WindowLogs();
    const grouped: WindowRule = { count: 100_000, perUs: 1_024_000, grainUs: 1_000 };
    let handle = NO_LOG;
    let highest = 0;
    for (let nowUs = 0; nowUs < 4 * grouped.perUs; nowUs += 100) {
      if (logs.readyAt(handle, grouped, nowUs, 1, 0) <= nowUs) handle = logs.append(handle, grouped, nowUs, 1);
      highest = Math.max(highest, handle);
    }
    expect(highest).toBeLessThan(2 * 2 * 2_048);
    expect(logs.used(handle, grouped, 4 * grouped.perUs)).toBeLessThanOrEqual(10_250);
  });

  it("say the same as lists, whatever is logged, adjusted, copied and released among them", () => {
    const anyRule = fc.record({
      count: fc.integer({ min: 1, max: 12 }),
      perUs: fc.integer({ min: 50, max: 2_000 }),
      grainUs: fc.constantFrom(1, 1, 9),
    });
    const anyStep = fc.record({
      kind: fc.constantFrom("take", "take", "take", "take", "take", "adjust", "adjust", "copy", "release"),
      key: fc.nat({ max: 3 }),
      other: fc.nat({ max: 3 }),
      pauseUs: fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 60 })),
      units: fc.integer({ min: 1, max: 3 }),
      pick: fc.nat(),
    });
    fc.assert(
      fc.property(anyRule, fc.array(anyStep, { maxLength: 120 }), (each, steps) => {
        const logs = new WindowLogs();
        const blank = () => ({
          handle: NO_LOG,
          naive: new NaiveWindow(each),
          open: [] as { atUs: number; cost: number }[],
        });
        const keys = Array.from({ length: 4 }, blank);
        let nowUs = 0;
        for (const { kind, key, other, pauseUs, units, pick } of steps) {
          nowUs += pauseUs;
          const one = keys[key];
          const cost = Math.min(units, each.count);
          if (kind === "take" && one.naive.readyAt(nowUs, cost, 0) <= nowUs) {
            one.handle = logs.append(one.handle, each, nowUs, cost);
            one.naive.append(nowUs, cost);
            one.open.push({ atUs: nowUs, cost });
          } else if (kind === "adjust" && one.open.length > 0) {
            // A start is corrected once, by no more than it took.
            const [start] = one.open.splice(pick % one.open.length, 1);
            const change = -Math.min(cost, start.cost);
            logs.adjust(one.handle, each, start.atUs, change, nowUs);
            if (one.naive.countedAt(start.atUs) + each.perUs > nowUs) one.naive.adjust(start.atUs, change);
          } else if (kind === "copy") {
            logs.release(keys[other].handle === one.handle ? NO_LOG : keys[other].handle);
            if (other !== key) {
              keys[other] = { handle: logs.copy(one.handle, each, each), naive: one.naive.copy(), open: [...one.open] };
            }
          } else if (kind === "release") {
            logs.release(one.handle);
            keys[key] = blank();
          }
          for (const { handle, naive } of keys) {
            expect(logs.used(handle, each, nowUs)).toBe(naive.used(nowUs));
            expect(logs.readyAt(handle, each, nowUs, cost, 0)).toBe(naive.readyAt(nowUs, cost, 0));
          }
        }
      }),
      seeded(150),
    );
  });
});
