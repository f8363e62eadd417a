// The child's half of a fleet: see startFleet.ts. A program imports it, says `ready`, works from `go` to `stop`, and leaves.
//
// Standard output belongs to the log: one JSON object a line. Commands come as JSON lines on standard input.
import { writeSync } from "node:fs";
import { createInterface } from "node:readline";

const longestWriteMs = 10_000;
const retryWriteMs = 2;

/**
 * Joins the fleet that started this process.
 *
 * - `id` and `input` are what the fleet gave this member.
 * - `library(path)` imports a file of the library, as compiled from the sources: `"index.js"`, `"redis.js"`.
 * - `ready()` says that the member can begin, and resolves with what `go` carries once all can.
 * - `stopping` is aborted by `stop`, and when the fleet is gone.
 * - `onCommand(name, act)` hears further commands by name.
 * - `start` and `release` log a start and its end; `log` logs anything else. Once they return, the line is out of this process:
 *   a SIGKILL does not lose it.
 * - `leave()` listens to commands no more, so that a process with nothing left to do ends.
 */
export function joinFleet() {
  const { id, input, libraryUrl, longestMs } = JSON.parse(process.env.POLITELY_FLEET ?? "{}");
  if (typeof id !== "string") throw new Error("This program is a member of a fleet; it is started by startFleet.");
  const stop = new AbortController();
  /** @type {Map<string, (data: unknown) => unknown>} */
  const acts = new Map([["stop", () => stop.abort()]]);
  const lines = createInterface({ input: process.stdin });
  lines.on("line", (line) => {
    const { command, data } = JSON.parse(line);
    acts.get(command)?.(data);
  });
  // The fleet closes it on leaving, whatever way it leaves.
  lines.once("close", () => stop.abort());
  setTimeout(() => process.exit(70), longestMs).unref();

  let starts = 0;
  return {
    id,
    input,
    /** @param {string} path */
    library: (path) => import(new URL(path, libraryUrl).href),
    /** @returns {Promise<unknown>} */
    ready() {
      const went = new Promise((resolve) => acts.set("go", resolve));
      write({ type: "ready" });
      return went;
    },
    stopping: stop.signal,
    /** @param {string} name @param {(data: unknown) => unknown} act */
    onCommand: (name, act) => void acts.set(name, act),
    /**
     * Logs a start and returns the number that `release` wants.
     *
     * @param {{ key: string; startedUs: number; units?: number; token?: number; [more: string]: unknown }} start
     */
    start(start) {
      starts += 1;
      write({ ...start, type: "start", serial: starts });
      return starts;
    },
    /** @param {number} serial @param {{ releasedUs: number; unused?: boolean; [more: string]: unknown }} end */
    release: (serial, end) => write({ ...end, type: "release", serial }),
    /** @param {{ type: string; [more: string]: unknown }} entry */
    log: write,
    leave: () => lines.close(),
  };
}

/** Microseconds on the clock that all processes of the machine share and that nobody sets. */
export function machineUs() {
  return Number(process.hrtime.bigint() / 1000n);
}

/** @param {object} entry */
function write(entry) {
  let rest = Buffer.from(`${JSON.stringify({ ...entry, machineUs: machineUs() })}\n`);
  const deadlineUs = machineUs() + longestWriteMs * 1000;
  while (rest.length > 0) {
    try {
      rest = rest.subarray(writeSync(1, rest));
    } catch (error) {
      // The pipe is full, since the fleet is busy.
      if (/** @type {NodeJS.ErrnoException} */ (error).code !== "EAGAIN" || machineUs() > deadlineUs) throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, retryWriteMs);
    }
  }
}
