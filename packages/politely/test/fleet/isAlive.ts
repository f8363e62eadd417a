import { readFileSync } from "node:fs";

/** Whether the process with this id runs, or stands still. One that has ended and was not yet collected by its parent does not count. */
export function isAlive(pid: number): boolean {
  return pid > 0 && canBeSignalled(pid) && stateOf(pid) !== "Z";
}

/** The letter that Linux gives it: `T` stands still, `Z` has ended. Undefined when it is gone, or where there is no /proc. */
export function stateOf(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // Its name stands in brackets before, and may hold anything.
    return stat.charAt(stat.lastIndexOf(")") + 2);
  } catch {
    return undefined;
  }
}

function canBeSignalled(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
