#!/usr/bin/env node
import { commands } from "./commands/index.js";
import { main } from "./main.js";

const interrupted = new AbortController();
const stopped = new AbortController();

process.on("SIGINT", () => (interrupted.signal.aborted ? stopped : interrupted).abort());
process.on("SIGTERM", () => interrupted.abort());
// A reader that has gone, `head` for instance, is no error.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code === "EPIPE") process.exit(0);
  throw error;
});

process.exitCode = await main(
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
