import { expect, it } from "vitest";
import { seeded } from "../../laws/seeded.js";
import { faultyProxy } from "../../servers/faultyProxy.js";
import { faultsOf, suffer } from "./faults.js";
import { allStart, comes, comesWithinMs, type Ground, startWorkers } from "./ground.js";
import { joinPlaces } from "./joinPlaces.js";
import { type Book, policyOf, violationsOf } from "./numbers.js";
import type { ServedPlace } from "./places.js";

/** Three times the patience with one answer, the pauses between, and what a busy machine adds. */
const toldWithinMs = 3 * 1_500 + 200 + 10_000;

/** What one member of the fleet knows it was granted, and what it never heard of. */
interface Tally {
  readonly granted: number;
  readonly unheard: number;
  readonly back: number;
  readonly unheardBack: number;
}

/** The way to the server fails in every way it can, and nothing counts twice. */
export function wayProof(ground: () => Ground & { readonly place: ServedPlace<unknown> }): void {
  let attempts = 0;
  it("counts nothing twice and lets nobody hang when replies are lost and connections are cut, silent or slow", async () => {
    const { seed = 1 } = seeded(1);
    const { place, library, kind } = ground();
    // Another one each time: a second try must not count the starts of the first.
    attempts += 1;
    const host = `way${attempts}.test`;
    const book: Book = {
      // A question on a connection that hangs is given up after 1.5 s: a place has to live longer than that and a renewal.
      permitTtlMs: 4_000,
      hosts: {
        [host]: { rate: { count: 40, perMs: 1_000, burst: 4 }, windows: [{ count: 15, perMs: 300 }], places: 4 },
      },
    };
    const input = { policy: policyOf(book), options: { name: "way", outage: "closed" } };
    await using proxy = await faultyProxy({ host: "127.0.0.1", port: place.port });
    const behind = { kind, library, address: place.addressAt(proxy.port) };
    const loads = [{ host, callers: 3, holdMs: [0, 60], unused: 0.1 }];
    const members = ["a", "b", "c"].map((id) => ({ id }));
    await using fleet = await startWorkers(behind, members, { ...input, seed, loads });
    await using judges = await startWorkers(ground(), [{ id: "judge" }], { ...input, loads: [{ host, callers: 0 }] });
    judges.go();
    fleet.go();
    for (const { id } of members) await comes(fleet, "start", id);
    await suffer(proxy, faultsOf(seed));
    await allStart(fleet, ["a", "b", "c"]);
    const entries = await fleet.finish(comesWithinMs);
    const starts = joinPlaces(entries, book.permitTtlMs * 1_000, { isCut: true });
    expect(violationsOf(starts, book), "a limit was broken").toEqual([]);
    for (const refused of entries.filter(({ type }) => type === "refused")) {
      expect(refused.code).toBe("POLITELY_STORE");
      expect(Number(refused.tookUs)).toBeLessThanOrEqual(toldWithinMs * 1_000);
    }
    const tallies = entries.filter(({ type }) => type === "done").map((entry) => tallyOf(entry.tallies, host));
    const sumOf = (name: keyof Tally): number => tallies.reduce((sum, tally) => sum + tally[name], 0);
    const granted = sumOf("granted");
    judges.send("judge", "look");
    const [{ starts: counted }] = await comes(judges, "looked");
    // Whatever was never heard of was granted or given back at most once, and nothing was granted twice.
    const known = JSON.stringify(tallies);
    expect(Number(counted), `processes know ${known}`).toBeGreaterThanOrEqual(
      granted - sumOf("back") - sumOf("unheardBack"),
    );
    expect(Number(counted), `processes know ${known}`).toBeLessThanOrEqual(granted - sumOf("back") + sumOf("unheard"));
    expect(starts.length).toBeLessThanOrEqual(granted);
    await judges.finish(comesWithinMs);
  });
}

function tallyOf(tallies: unknown, host: string): Tally {
  return (tallies as Readonly<Record<string, Tally>>)[host];
}
