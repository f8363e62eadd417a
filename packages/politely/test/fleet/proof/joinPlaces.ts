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
    const toldUs = start.releasedUs ?? (left === undefined ? Number.MAX_SAFE_INTEGER : start.startedUs);
    const releasedUs = Math.min(toldUs, sentUs.get(name) ?? toldUs);
    const unused = start.unused === true || left?.unused === true;
    return { ...start, unused, releasedUs: Math.min(releasedUs, start.startedUs + lifetimeUs) };
  });
}

/** When releases were sent, on the store's clock as their member knows it: ahead of the machine's by at least as much as any of its replies says. */
function sentAt(entries: readonly FleetEntry[], leaving: ReadonlyMap<string, FleetEntry>): Map<string, number> {
  const told = entries.filter(({ type }) => type === "release");
  const ahead = new Map<string, number>();
  for (const { member, releasedUs, machineUs } of told) {
    const aheadUs = Number(releasedUs) - Number(machineUs);
    ahead.set(member, Math.max(aheadUs, ahead.get(member) ?? aheadUs));
  }
  return new Map(
    told.map((entry) => {
      const sentUs = Number(leaving.get(nameOf(entry))?.machineUs);
      return [nameOf(entry), sentUs + (ahead.get(entry.member) ?? 0)];
    }),
  );
}

function nameOf({ member, serial }: FleetEntry): string {
  return `${member} ${String(serial)}`;
}
