/** A clock that every process and thread of this machine reads alike. */
export interface MachineTime {
  /** Whole microseconds since some instant near the start of the machine. Never goes back, whatever happens to the wall clock. */
  nowUs(): number;
  /**
   * Tells one run of the machine from the next, since the clock starts again with each. The same in all processes that share the clock.
   *
   * Outside Linux it is empty. A restart can then be told only by a clock that stands earlier than it did. When it stands later, less
   * time has passed on it than really has, so counting on is safe too.
   */
  readonly bootId: string;
}

interface MachineProcess {
  hrtime(): readonly [number, number];
  getBuiltinModule(name: "node:fs"): FileSystem | undefined;
}

interface FileSystem {
  readFileSync(path: string, encoding: "utf8"): string;
  readlinkSync(path: string): string;
}

/**
 * Gives the monotonic clock of this machine: CLOCK_MONOTONIC on Linux.
 *
 * It stands still while the machine is suspended. Throws `TypeError` where there is no `process`, as in a browser.
 */
export function machineTime(): MachineTime {
  const { process } = globalThis as unknown as { readonly process?: MachineProcess };
  if (typeof process?.hrtime !== "function" || typeof process.getBuiltinModule !== "function") {
    throw new TypeError("The clock of the machine needs Node 20.19 or later, Bun or Deno.");
  }
  return {
    nowUs() {
      const [seconds, nanoseconds] = process.hrtime();
      // Rounded down: an instant that has not quite come would let something start early.
      return seconds * 1_000_000 + Math.floor(nanoseconds / 1_000);
    },
    bootId: readBootId(process),
  };
}

function readBootId(process: MachineProcess): string {
  const fs = process.getBuiltinModule("node:fs");
  const bootId = tryTo(() => fs?.readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim());
  // A container may have a monotonic clock of its own, which is another one although the machine is the same.
  const clockId = tryTo(() => fs?.readlinkSync("/proc/self/ns/time"));
  return bootId === "" ? "" : `${bootId} ${clockId}`.trim();
}

/** An empty text where there is no such file, or it may not be read. */
function tryTo(read: () => string | undefined): string {
  try {
    return read() ?? "";
  } catch {
    return "";
  }
}
