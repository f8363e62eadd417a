import { expect, it } from "vitest";
import { checkStarts } from "../checkStarts.js";
import { joinStarts } from "../joinStarts.js";
import { awaits, comes, comesWithinMs, type Ground, logged, startWorkers } from "./ground.js";

const ttlMs = 1_000;
const host = "both.test";

/** Processes that do not agree. */
export function policiesProof(ground: () => Ground): void {
  it("applies the stricter of two policies to both processes, warns both, and forgets it one lifetime after it was last used", async () => {
    const member = (id: string, rate: string): { readonly id: string; readonly input: object } => ({
      id,
      input: { policy: { hosts: { [host]: { rate, permitTtl: ttlMs } } } },
    });
    const members = [member("lax", "40/s"), member("strict", "8/s")].map((one) => ({
      ...one,
      input: { ...one.input },
    }));
    const input = { options: { name: "policies", outage: "closed" }, loads: [{ host, callers: 2 }] };
    await using fleet = await startWorkers(ground(), members, input);
    fleet.send("lax", "go");
    await comes(fleet, "start", "lax", 25);
    fleet.send("strict", "go");
    await comes(fleet, "start", "strict", 4);
    await fleet.kill("strict");
    const [{ machineUs: killedUs }] = logged(fleet, "killed", "strict");
    // Twenty starts in a row that are closer than the strict policy has them.
    await awaits(fleet, "the lax policy is back", (log) => {
      const last = log.filter(({ type, machineUs }) => type === "start" && machineUs > killedUs).slice(-20);
      return last.length === 20 && Number(last[19].startedUs) - Number(last[0].startedUs) < 19 * 125_000;
    });
    const starts = joinStarts(await fleet.finish(comesWithinMs)).toSorted((a, b) => a.startedUs - b.startedUs);
    const first = starts.findIndex(({ member: who }) => who === "strict");
    const last = starts.findLastIndex(({ member: who }) => who === "strict");
    const together = starts.slice(first, last + 1);
    expect(checkStarts(together, { rate: { count: 8, perUs: 1_000_000, burst: 1 } })).toEqual([]);
    expect(checkStarts(starts, { rate: { count: 40, perUs: 1_000_000, burst: 1 } })).toEqual([]);
    for (const { id } of members) expect(logged(fleet, "event warn", id)).toHaveLength(1);
    // Nobody uses the strict one any more, but it counts for one lifetime: at most so many starts in that time.
    const soon = starts.filter(({ machineUs }) => machineUs > killedUs && machineUs < killedUs + (ttlMs - 200) * 1_000);
    expect(soon.length).toBeLessThanOrEqual(8);
  });
}
