import type { LoggedStart } from "./checkStarts.js";
import type { FleetEntry } from "./fleetMember.js";

/** A start of a fleet's log, with its release if there was one. */
export interface FleetStart extends LoggedStart {
  readonly member: string;
  /** When the member logged it, on the clock that all processes of the machine share. Not before the start really was. */
  readonly machineUs: number;
  /** The entry as it was logged, with whatever else the program put there. */
  readonly entry: FleetEntry;
}

/**
 * Puts starts and releases of a log together, in the order of the log. A start without release has no `releasedUs`: its process was
 * killed before, or still holds its place.
 *
 * Throws when a release has no start, or a start two releases: the program logs wrongly then, and nothing can be said about the limiter.
 */
export function joinStarts(entries: readonly FleetEntry[]): FleetStart[] {
  const releases = new Map<string, FleetEntry>();
  const name = ({ member, serial }: FleetEntry): string => `${String(serial)} of ${member}`;
  for (const entry of entries) {
    if (entry.type !== "release") continue;
    if (releases.has(name(entry))) throw new Error(`Start ${name(entry)} was released twice.`);
    releases.set(name(entry), entry);
  }
  const starts = entries
    .filter(({ type }) => type === "start")
    .map((entry) => {
      const release = releases.get(name(entry));
      releases.delete(name(entry));
      return joined(entry, release);
    });
  for (const release of releases.keys()) throw new Error(`There is a release of ${release}, but no such start.`);
  return starts;
}

function joined(entry: FleetEntry, release: FleetEntry | undefined): FleetStart {
  const { member, machineUs, key, startedUs, units, token } = entry;
  return {
    member,
    machineUs,
    key: String(key),
    startedUs: Number(startedUs),
    units: Number(units ?? 1),
    ...(token === undefined ? {} : { token: Number(token) }),
    ...(release === undefined ? {} : { releasedUs: Number(release.releasedUs), unused: release.unused === true }),
    entry,
  };
}
