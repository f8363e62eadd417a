import { expect, it } from "vitest";
import { checkStarts, checkTokens } from "../checkStarts.js";
import type { FleetEntry } from "../fleetMember.js";
import { joinStarts } from "../joinStarts.js";
import { comes, comesWithinMs, type Ground, startWorkers } from "./ground.js";

const coolSec = 2;
const windowMs = 2_000;
const policy = {
  hosts: {
    "debt.test": { window: { count: 3, per: windowMs } },
    "cool.test": { rate: "50/s" },
    "quota.test": { quota: { count: 5, per: "month" } },
  },
};

/** What is learned outlives whoever learned it. */
export function memoryProof(ground: () => Ground): void {
  it("keeps debts, cooldowns and quotas for the next process when all have ended, whatever its clock says", async () => {
    const input = { policy, options: { name: "restart", outage: "closed" } };
    const told = { status: 429, headers: { "retry-after": String(coolSec) } };
    const before = await ran(ground(), { id: "before", clockOffsetSec: 60 }, input, [
      { host: "debt.test", most: 3 },
      { host: "quota.test", most: 3 },
      { host: "cool.test", most: 1, ...told },
    ]);
    const after = await ran(ground(), { id: "after", clockOffsetSec: -60 }, input, [
      { host: "debt.test", most: 3 },
      { host: "quota.test", most: 2 },
      { host: "cool.test", most: 1 },
    ]);
    const starts = [...joinStarts(before), ...joinStarts(after)];
    const of = (host: string): typeof starts => starts.filter(({ key }) => key === host);
    expect(checkStarts(of("debt.test"), { windows: [{ count: 3, perUs: windowMs * 1_000 }] })).toEqual([]);
    const [{ releasedUs: toldUs = 0 }] = of("cool.test");
    const hold = { fromUs: toldUs, untilUs: toldUs + coolSec * 1_000_000 };
    expect(checkStarts(of("cool.test"), { holds: [hold] })).toEqual([]);
    expect(checkTokens(starts)).toEqual([]);
    expect(starts).toHaveLength(13);
    expect(after.filter(({ type }) => type === "tried")).toMatchObject([{ host: "quota.test", isGranted: false }]);
  });
}

/** One process that makes its requests, tries one more of its quota, and ends. */
async function ran(
  ground: Ground,
  member: { readonly id: string; readonly clockOffsetSec: number },
  input: Readonly<Record<string, unknown>>,
  loads: readonly { readonly host: string; readonly most: number }[],
): Promise<FleetEntry[]> {
  await using fleet = await startWorkers(ground, [member], { ...input, loads });
  fleet.go();
  const count = loads.reduce((sum, { most }) => sum + most, 0);
  await comes(fleet, "releasing", member.id, count);
  if (member.id === "after") {
    fleet.send(member.id, "try", { host: "quota.test" });
    await comes(fleet, "tried");
  }
  return await fleet.finish(comesWithinMs);
}
