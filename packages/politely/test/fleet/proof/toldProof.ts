import { setTimeout as delay } from "node:timers/promises";
import { expect, it } from "vitest";
import { checkStarts } from "../checkStarts.js";
import { joinStarts } from "../joinStarts.js";
import { allStart, comes, comesWithinMs, type Ground, startWorkers } from "./ground.js";

const coolSec = 2;
const host = "told.test";

/** What one hears, all do. */
export function toldProof(name: string, ground: () => Ground): void {
  it("holds every process within 100 ms of a 429 that one of them heard, and lets one go first afterwards", async () => {
    const members = ["a", "b", "c"].map((id) => ({ id }));
    const loads = [{ host, callers: 2, holdMs: [20, 20] }];
    const input = {
      policy: { hosts: { [host]: { rate: "100/s" } } },
      options: { name: "told", outage: "closed" },
      loads,
    };
    await using fleet = await startWorkers(ground(), members, input);
    fleet.go();
    for (const { id } of members) await comes(fleet, "start", id, 5);
    fleet.send("b", "answer", { host, status: 429, headers: { "retry-after": String(coolSec) } });
    await comes(fleet, "event cooldown", "b");
    fleet.send("b", "answer", { host });
    await delay(coolSec * 1_000);
    await allStart(fleet, ["a", "b", "c"]);
    const entries = await fleet.finish(comesWithinMs);
    const starts = joinStarts(entries).toSorted((a, b) => a.startedUs - b.startedUs);
    const report = entries.find(({ type, status }) => type === "releasing" && status === 429);
    const reported = starts.find(({ member, entry }) => member === "b" && entry.serial === report?.serial);
    const toldUs = reported?.releasedUs ?? 0;
    const endUs = toldUs + coolSec * 1_000_000;
    const holds = [{ fromUs: toldUs + 100_000, untilUs: endUs }];
    expect(checkStarts(starts, { holds, rate: { count: 100, perUs: 1_000_000, burst: 1 } })).toEqual([]);
    const [probe, second] = starts.filter(({ startedUs }) => startedUs >= endUs);
    expect(second.startedUs).toBeGreaterThanOrEqual(probe.releasedUs ?? Number.POSITIVE_INFINITY);
    const after = starts.filter(({ startedUs }) => startedUs > toldUs && startedUs < endUs);
    const lastMs = ((after.at(-1)?.startedUs ?? toldUs) - toldUs) / 1_000;
    console.info(`${name}: ${after.length} starts after a 429 was told, the last ${lastMs.toFixed(1)} ms after it`);
  });
}
