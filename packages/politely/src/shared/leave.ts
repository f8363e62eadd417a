import type { KeyState } from "./keyState.js";
import { keep } from "./tracks.js";

/**
 * Takes somebody out of the line of a key, or a process out of its fleet and all lines: tickets begin with its name and a slash.
 *
 * When no process is left and nobody waits or is in flight, no policy is in use any more: the next process begins with its own. What was started still counts for it.
 */
export function leave(state: KeyState, name: string, nowUs: number): void {
  const { line, members, places, tracks } = state;
  const before = members.length;
  keep(line, (ticket) => ticket.name !== name && !ticket.name.startsWith(`${name}/`));
  keep(members, (member) => member.name !== name);
  if (members.length === before || members.length > 0 || line.length > 0 || places.length > 0) return;
  for (const track of tracks) track.usedUs = Math.min(track.usedUs, nowUs);
}
