#!/usr/bin/env node
import { commands } from "./commands/index.js";
import { main } from "./main.js";

/** So long after the second Ctrl-C everything may take to end in order. */
const FORCE_MS = 5_000;

const interrupted = new AbortController();
const stopped = new AbortController();
let isUnread = false;

/** The first signal lets what is in flight end, the second stops it, and the third ends the process, as do five seconds after the second. */
function heard(code: number): void {
  if (!interrupted.signal.aborted) interrupted.abort();
  else if (stopped.signal.aborted) process.exit(code);
  else {
    stopped.abort();
    setTimeout(() => process.exit(code), FORCE_MS).unref();
  }
}

process.on("SIGINT", () => heard(130));
process.on("SIGTERM", () => heard(143));
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  // A reader that has gone, `head` for instance, wants no more: that is not worth a word, but not everything was done.
  if (!isUnread && error.code !== "EPIPE")
    process.stderr.write(`politely: stdout cannot be written: ${error.message}\n`);
  isUnread = true;
  process.exitCode = Math.max(1, Number(process.exitCode ?? 0));
  interrupted.abort();
  // Whoever waits for room in it would wait for ever.
  process.stdout.emit("drain");
});
// Nobody is left to be told.
process.stderr.on("error", () => undefined);

const code = await main(
  process.argv.slice(2),
  {
    stdin: process.stdin,
    stdout: process.stdout,
    stderr: process.stderr,
    env: process.env,
    cwd: process.cwd(),
    isTerminal: process.stderr.isTTY === true && process.env.TERM !== "dumb" && process.env.CI === undefined,
    columns: process.stderr.columns ?? 80,
    interrupted: interrupted.signal,
    stopped: stopped.signal,
  },
  commands,
);
process.exitCode = isUnread ? Math.max(1, code) : code;
// What nobody reads keeps a process alive; all else is done.
const leave = (): void => process.exit();
if (stopped.signal.aborted) leave();
stopped.signal.addEventListener("abort", leave);
