import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import type { FleetEntry } from "../fleetMember.js";
import { joinStarts } from "../joinStarts.js";
import type { Fleet } from "../startFleet.js";
import { awaits, comes, comesWithinMs, groundOf, startWorkers } from "./ground.js";
import { type Book, policyOf, violationsOf } from "./numbers.js";
import { redisPlace } from "./places.js";

const crowd = 50;
const watchedMs = 6_000;
const book: Book = {
  permitTtlMs: 30_000,
  hosts: {
    "slow.test": { rate: { count: 5, perMs: 1_000, burst: 1 } },
    "fast.test": { rate: { count: 200, perMs: 1_000, burst: 1 } },
  },
};

describe("fifty processes that all wait for one key", () => {
  const ground = groundOf(() => redisPlace());

  it("ask few times for each start, at a slow key and at a fast one, and all get their turn", async () => {
    const members = Array.from({ length: crowd }, (_, index) => ({ id: `one-${index}` }));
    const hosts = Object.keys(book.hosts);
    const loads = hosts.map((host) => ({ host, callers: 2 }));
    const input = { policy: policyOf(book), options: { name: "crowd", outage: "closed" }, loads };
    await using fleet = await startWorkers(ground(), members, input);
    fleet.go();
    // From here on everybody stands in line.
    const isFast = ({ type, key }: FleetEntry): boolean => type === "start" && key === "fast.test";
    await awaits(fleet, "everybody has started at the fast key", (log) => membersIn(log.filter(isFast)) === crowd);
    const before = await tallied(fleet, members, 1);
    await delay(watchedMs);
    const after = await tallied(fleet, members, 2);
    const entries = await fleet.finish(2 * comesWithinMs);
    expect(violationsOf(joinStarts(entries), book), "a limit was broken").toEqual([]);
    for (const host of hosts) {
      const calls = sum(after, host, "calls") - sum(before, host, "calls");
      const granted = sum(after, host, "granted") - sum(before, host, "granted");
      console.info(`${host}: ${granted} starts, ${(calls / granted).toFixed(2)} calls for each`);
      expect(granted).toBeGreaterThan(10);
      // As L16 has it, though fifty processes on two cores come late to turns that are 5 ms apart.
      expect(calls / granted).toBeLessThanOrEqual(2);
    }
  });
});

/** What each member has asked so far. */
async function tallied(
  fleet: Fleet,
  members: readonly { readonly id: string }[],
  count: number,
): Promise<FleetEntry[]> {
  for (const { id } of members) fleet.send(id, "tally");
  const told = await comes(fleet, "tally", undefined, count * crowd);
  return told.slice(-crowd);
}

function membersIn(entries: readonly FleetEntry[]): number {
  return new Set(entries.map(({ member }) => member)).size;
}

function sum(entries: readonly FleetEntry[], host: string, what: "calls" | "granted"): number {
  return entries.reduce((total, { tallies }) => {
    const of = tallies as Readonly<Record<string, Readonly<Record<"calls" | "granted", number>>>>;
    return total + (of[host]?.[what] ?? 0);
  }, 0);
}
