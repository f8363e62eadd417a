import type { FleetEntry } from "../fleetMember.js";
import { type FleetStart, joinStarts } from "../joinStarts.js";

/**
 * The starts of a log as `checkStarts` wants them: each with the first instant at which its place may have been free.
 *
 * That is when the store took it back, where its reply says so; when it was granted, where it was on its way back when its process
 * ended; and one lifetime after the grant in any case, since nobody has to renew it who was killed or stood still.
 */
export function joinPlaces(entries: readonly FleetEntry[], lifetimeUs: number): FleetStart[] {
  const leaving = new Map<string, FleetEntry>();
  for (const entry of entries) if (entry.type === "releasing") leaving.set(nameOf(entry), entry);
  return joinStarts(entries).map((start) => {
    const left = leaving.get(nameOf(start.entry));
    const releasedUs = start.releasedUs ?? (left === undefined ? Number.MAX_SAFE_INTEGER : start.startedUs);
    const unused = start.unused === true || left?.unused === true;
    return { ...start, unused, releasedUs: Math.min(releasedUs, start.startedUs + lifetimeUs) };
  });
}

function nameOf({ member, serial }: FleetEntry): string {
  return `${member} ${String(serial)}`;
}
