import type { FleetEntry } from "../fleetMember.js";
import { type FleetStart, joinStarts } from "../joinStarts.js";

/**
 * The starts of a log as `checkStarts` wants them: each with the first instant at which its place may have been free.
 *
 * That is when the store took it back, where its reply says so; when it was granted, where it was on its way back when its process
 * ended; and one lifetime after the grant in any case, since nobody has to renew it who was killed or stood still. With `isCut` connections are cut: then a client
 * may have sent the release twice, the reply tells of the second time, and the place may have been free since it was sent first.
 */
export function joinPlaces(entries: readonly FleetEntry[], lifetimeUs: number, { isCut = false } = {}): FleetStart[] {
  const leaving = new Map<string, FleetEntry>();
  for (const entry of entries) if (entry.type === "releasing") leaving.set(nameOf(entry), entry);
  const sentUs = isCut ? sentAt(entries, leaving) : new Map<string, number>();
  return joinStarts(entries).map((start) => {
    const name = nameOf(start.entry);
    const left = leaving.get(name);
    const releasedUs =
      sentUs.get(name) ?? start.releasedUs ?? (left === undefined ? Number.MAX_SAFE_INTEGER : start.startedUs);
    const unused = start.unused === true || left?.unused === true;
    return { ...start, unused, releasedUs: Math.min(releasedUs, start.startedUs + lifetimeUs) };
  });
}

/** When releases were sent, on the store's clock. That is ahead of the machine's by at least as much as any reply says. */
function sentAt(entries: readonly FleetEntry[], leaving: ReadonlyMap<string, FleetEntry>): Map<string, number> {
  const told = entries.filter(({ type }) => type === "release");
  const aheadUs = Math.max(...told.map(({ releasedUs, machineUs }) => Number(releasedUs) - Number(machineUs)));
  return new Map(told.map((entry) => [nameOf(entry), Number(leaving.get(nameOf(entry))?.machineUs) + aheadUs]));
}

function nameOf({ member, serial }: FleetEntry): string {
  return `${member} ${String(serial)}`;
}
