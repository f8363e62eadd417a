import { existsSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";

const libraries = "/usr/lib";
const maxOffsetSec = 366 * 86_400;

/**
 * The environment in which a program's wall clock is off by `offsetSec`: negative is late. Its monotonic clock is right.
 *
 * Throws with one line saying what to install where libfaketime is missing.
 */
export function fakedClock(offsetSec: number): Record<string, string> {
  if (!(Math.abs(offsetSec) <= maxOffsetSec)) {
    throw new RangeError(`A clock can be off by ${maxOffsetSec} s at most; got ${offsetSec}`);
  }
  return {
    LD_PRELOAD: libraryPath(),
    FAKETIME: `${offsetSec < 0 ? "" : "+"}${offsetSec}s`,
    FAKETIME_DONT_FAKE_MONOTONIC: "1",
  };
}

/** Removes what libfaketime leaves in shared memory when the process with this id was killed. Call it once that is gone. */
export function removeFakedClock(pid: number): void {
  for (const name of [`faketime_shm_${pid}`, `sem.faketime_sem_${pid}`])
    rmSync(join("/dev/shm", name), { force: true });
}

function libraryPath(): string {
  const folders = existsSync(libraries) ? readdirSync(libraries) : [];
  const paths = folders.map((folder) => join(libraries, folder, "faketime", "libfaketimeMT.so.1"));
  const found = paths.find((path) => existsSync(path));
  if (found === undefined) {
    throw new Error("libfaketime is not installed. Run: node scripts/servers.mjs, or: apt-get install faketime.");
  }
  return found;
}
