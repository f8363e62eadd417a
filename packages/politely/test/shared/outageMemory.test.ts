import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { describe, expect, it } from "vitest";
import { ONE } from "../../src/scheduler/cost.js";
import type { Plan } from "../../src/scheduler/shared/plan.js";
import { Recollection } from "../../src/scheduler/shared/recollection.js";
import { MissedLanes } from "../../src/scheduler/shared/standbyMissed.js";
import { groupsFor } from "../../src/scheduler/shared/startLog.js";
import type { SharedRule } from "../../src/shared/operation.js";
import { keyOf } from "../../src/testing/store/operations.js";

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

function heapBytes(): number {
  collect();
  return process.memoryUsage().heapUsed;
}

const twoPerSecond = { rateCount: 2, ratePerUs: 1_000_000, burst: 1 };
const thousandPerHour = { windows: [1_000, 3_600_000_000, 1] };
const quota = { quota: 10_000, calendar: "day UTC" };

function plansOf(count: number, limits: Partial<SharedRule>): Plan[] {
  const { rule, ruleId } = keyOf(limits);
  const keys = [{ shared: rule, ruleId }];
  return Array.from({ length: count }, (_, host) => ({ storeKeys: [`host h${host}.org`], keys }) as unknown as Plan);
}

/** Remembers starts three seconds apart at each host. Bytes of one host. */
function bytesPerHost(recollection: Recollection, plans: readonly Plan[], starts: number): number {
  const before = heapBytes();
  for (let number = 0; number < starts; number++)
    for (const plan of plans) recollection.started(plan, ONE, { startedUs: number * 3_000_000, count: 1 });
  const bytes = (heapBytes() - before) / plans.length;
  // It must still be there when it is measured.
  expect(recollection.holdOf(plans[0], 0)).toBeUndefined();
  return bytes;
}

describe("what a process remembers of its starts in case the store goes away", () => {
  it.each([
    ["a rate of 2/s", 3_000, twoPerSecond, 63, 800],
    ["a window of 1000/h", 500, thousandPerHour, 1_000, 9_000],
    ["a quota", 300, quota, 3_000, 9_000],
  ] as const)("%s takes little for each host", (_, hosts, limits, starts, most) => {
    expect(bytesPerHost(new Recollection(), plansOf(hosts, limits), starts)).toBeLessThan(most);
  });

  it.each([1, 1_000, 10_000, 100_000])("takes less for each where there are many: %d", (hosts) => {
    const most = groupsFor(hosts);
    expect(most).toBeGreaterThanOrEqual(8);
    expect(most).toBeLessThanOrEqual(256);
    expect(24 * most * hosts).toBeLessThanOrEqual(24_000_000);
    const recollection = new Recollection();
    const plans = plansOf(Math.min(hosts, 5_000), thousandPerHour);
    for (const plan of plans) recollection.started(plan, ONE, { startedUs: 0, count: 1 });
    for (let number = 1; number < 400; number++)
      recollection.started(plans[0], ONE, { startedUs: number * 3_000_000, count: 1 });
    expect(recollection.takeStarts("host h0.org").length).toBeLessThanOrEqual(groupsFor(plans.length));
  });

  it("is nothing where nobody will ask for it", () => {
    const recollection = new Recollection({ hasStarts: false });
    expect(bytesPerHost(recollection, plansOf(10_000, thousandPerHour), 10)).toBeLessThan(50);
    expect(recollection.takeStarts("host h0.org")).toEqual([]);
  });

  it("is bounded: of more than 100,000 hosts it says so, and one that it does not know counts as spent", () => {
    const said: string[] = [];
    const recollection = new Recollection({ onForgotten: (message) => said.push(message) });
    const plans = plansOf(100_500, { gapUs: 60_000_000 });
    for (const plan of plans.slice(0, 100_000)) recollection.started(plan, ONE, { startedUs: 5, count: 1 });
    expect([said, recollection.unsureOf(plans[100_001], 6)]).toEqual([[], undefined]);
    for (const plan of plans.slice(100_000)) recollection.started(plan, ONE, { startedUs: 6, count: 1 });
    expect(said).toHaveLength(1);
    expect(recollection.unsureOf(plans[100_001], 6)).toBeUndefined();
    expect(recollection.unsureOf(plans[0], 6)).toEqual({ untilUs: 60_000_005, index: 0 });
    expect(recollection.unsureOf(plans[0], 60_000_005)).toBeUndefined();
  });

  it("keeps hosts that matter and drops those that do not, when there are too many", () => {
    const said: string[] = [];
    const recollection = new Recollection({ onForgotten: (message) => said.push(message) });
    const [slow] = plansOf(1, { gapUs: 3_600_000_000 });
    recollection.started(slow, ONE, { startedUs: 0, count: 1 });
    const fast = plansOf(150_000, twoPerSecond).slice(1);
    for (const [number, plan] of fast.entries())
      recollection.started(plan, ONE, { startedUs: number * 10_000, count: 1 });
    expect(said).toEqual([]);
    expect(recollection.takeStarts("host h0.org")).toMatchObject([{ atUs: 0, count: 1 }]);
  });
});

describe("what a process remembers of the starts of an outage", () => {
  it("takes no more than 24 bytes for each of 256 groups and what belongs to the host", () => {
    const plans = plansOf(200, thousandPerHour);
    const before = heapBytes();
    const missed = new MissedLanes<{ readonly plan: Plan }>();
    for (let number = 0; number < 1_000; number++)
      for (const plan of plans)
        missed.add({ plan }, { startedUs: number * 3_000_000, count: 1, units: undefined }, number * 3_000_000);
    expect((heapBytes() - before) / plans.length).toBeLessThan(10_000);
    expect(missed.size).toBe(200);
  });

  it("is bounded: there is no room for one more than 100,000 hosts until one of them is over", () => {
    const missed = new MissedLanes<{ readonly plan: Plan }>();
    const plans = plansOf(100_001, { gapUs: 60_000_000 });
    const start = { startedUs: 0, count: 1, units: undefined };
    for (const plan of plans.slice(0, 100_000)) missed.add({ plan }, start, 0);
    expect(missed.size).toBe(100_000);
    const { storeKeys } = plans[100_000];
    expect(missed.hasRoomFor(storeKeys, 59_999_999)).toBe(false);
    expect(missed.hasRoomFor(plans[0].storeKeys, 59_999_999)).toBe(true);
    expect(missed.add({ plan: plans[100_000] }, start, 59_999_999)).toBe(false);
    expect(missed.hasRoomFor(storeKeys, 61_000_000)).toBe(true);
  });
});
