import { expect, it } from "vitest";
import { seeded } from "../../laws/seeded.js";
import type { FleetStart } from "../joinStarts.js";
import type { Ground } from "./ground.js";
import { joinPlaces } from "./joinPlaces.js";
import { violationsOf } from "./numbers.js";
import { gentle, rough, type StormLoad, stormsOf, weather } from "./storm.js";

/** Random storms over a fleet, as many as `FC_TIMES` says. */
export function stormProof(ground: () => Ground, { isGentle = false }: { readonly isGentle?: boolean } = {}): void {
  it("keeps every limit through kills, pauses, clocks two minutes apart, and processes that come and go", async () => {
    const { seed = 1, numRuns = 1 } = seeded(1);
    const load: StormLoad = isGentle ? gentle : rough;
    const { book } = load;
    for (const storm of stormsOf(seed, numRuns)) {
      const entries = await weather(storm, ground(), load);
      const starts = joinPlaces(entries, book.permitTtlMs * 1_000);
      expect(violationsOf(starts, book), "a limit was broken").toEqual([]);
      // A slow store may not get round to every host in a short storm.
      const hosts = new Set(starts.map(({ key }) => key));
      expect(hosts.size).toBeGreaterThanOrEqual(isGentle ? 1 : Object.keys(book.hosts).length);
      // Whoever stood still does not use a start whose place may be somebody else's by now.
      expect(latestUs(starts)).toBeLessThan(book.permitTtlMs * 1_000);
      const refused = entries.filter(({ type }) => type === "refused");
      expect(refused.filter(({ code }) => code !== "POLITELY_STORE")).toEqual([]);
    }
  });
}

/** How long after its instant a start was used at most. The one that was used soonest tells how the clocks differ. */
function latestUs(starts: readonly FleetStart[]): number {
  const lateUs = starts.map(({ machineUs, startedUs }) => machineUs - startedUs);
  return Math.max(...lateUs) - Math.min(...lateUs);
}
