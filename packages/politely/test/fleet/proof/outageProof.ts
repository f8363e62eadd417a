import { setTimeout as delay } from "node:timers/promises";
import { expect, it } from "vitest";
import { faultyProxy } from "../../servers/faultyProxy.js";
import { checkStarts } from "../checkStarts.js";
import type { FleetEntry } from "../fleetMember.js";
import { type FleetStart, joinStarts } from "../joinStarts.js";
import { awaits, comes, comesWithinMs, type Ground, nowUs, startWorkers } from "./ground.js";
import type { ServedPlace } from "./places.js";

const awayMs = 1_500;
const limit = { count: 20, perMs: 1_000 };
const sharers = ["share-1", "share-2"];

/** The store goes and comes back, under each policy for that. */
export function outageProof(name: string, ground: () => Ground & { readonly place: ServedPlace<unknown> }): void {
  it("keeps to the outage policy while the server is away, says so, and makes no burst when it is back", async () => {
    const { place, library, kind } = ground();
    await using proxy = await faultyProxy({ host: "127.0.0.1", port: place.port });
    const behind = { kind, library, address: place.addressAt(proxy.port) };
    const policy = { default: { window: { count: limit.count, per: limit.perMs } } };
    const member = (id: string, outage: string): { readonly id: string; readonly input: Record<string, unknown> } => ({
      id,
      input: { options: { name: `outage ${outage}`, outage } },
    });
    const members = [...sharers.map((id) => member(id, "share")), member("closed", "closed"), member("open", "open")];
    const loads = [{ host: "away.test", callers: 3, holdMs: [20, 20] }];
    await using fleet = await startWorkers(behind, members, { policy, loads });
    fleet.go();
    // The sharers have to know of each other.
    for (const { id } of members) await comes(fleet, "start", id, 12);
    await proxy.cut();
    for (const { id } of members) await comes(fleet, "event outage", id, 1);
    await delay(awayMs);
    await proxy.heal();
    for (const { id } of members) await comes(fleet, "event outage", id, 2);
    const backUs = nowUs();
    const isAfter = ({ type, machineUs }: FleetEntry): boolean => type === "start" && machineUs > backUs;
    await awaits(fleet, "all start again", (log) => {
      const after = log.filter(isAfter);
      return members.every(({ id }) => after.filter((entry) => entry.member === id).length > 10);
    });
    const entries = await fleet.finish(comesWithinMs);
    const starts = joinStarts(entries);
    const alone = (id: string): FleetStart[] => starts.filter(({ member: who, entry }) => who === id && !entry.isStore);
    // Closed: nothing starts without the store, and everybody is told.
    expect(alone("closed")).toEqual([]);
    const refused = entries.filter(({ type }) => type === "refused");
    expect(new Set(refused.map(({ member: who, code }) => `${who} ${String(code)}`))).toEqual(
      new Set(["closed POLITELY_STORE"]),
    );
    // Open: more than the limit.
    expect(alone("open").length).toBeGreaterThan((limit.count * awayMs) / limit.perMs);
    // Share: half of it each, by a clock that a busy machine reads late.
    const half = { windows: [{ count: limit.count / sharers.length, perUs: limit.perMs * 1_000 }], slackUs: 200_000 };
    for (const id of sharers) {
      expect(alone(id).length).toBeGreaterThan(0);
      expect(checkStarts(alone(id), half)).toEqual([]);
    }
    const most = mostTogether(
      starts.filter(({ member: who }) => sharers.includes(who)),
      limit.perMs * 1_000,
    );
    console.info(
      `${name}: at most ${most} starts in a period that allows ${limit.count}, while the server went and came back`,
    );
    // Who is back first may take all that the other, who is not, still takes its half of; the same when it goes.
    expect(most).toBeLessThanOrEqual(2 * limit.count);
    const store = starts.filter(({ entry, member: who }) => entry.isStore === true && sharers.includes(who));
    expect(checkStarts(store, { windows: [{ count: limit.count, perUs: limit.perMs * 1_000 }] })).toEqual([]);
  });
}

/** The most starts in any period, on the machine's clock, on which each start is as late as it was logged. */
function mostTogether(starts: readonly FleetStart[], perUs: number): number {
  const all = starts.map(({ machineUs }) => machineUs).sort((a, b) => a - b);
  return Math.max(...all.map((fromUs) => all.filter((atUs) => atUs >= fromUs && atUs < fromUs + perUs).length));
}
