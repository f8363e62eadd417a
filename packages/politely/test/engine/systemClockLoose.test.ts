import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, it } from "vitest";
import { compileLibrary } from "../fleet/compileLibrary.js";

// Open for ever, and quiet: nothing but its timers ever wakes this process.
const program = `
  const { systemClock } = await import(process.argv[1]);
  const server = (await import("node:net")).createServer().listen(0);
  const clock = systemClock();
  let called = 0;
  const next = () => clock.unref(clock.setTimer(clock.now() + 3.37, () => {
    called += 1;
    if (called < 30) next();
    else server.close();
  }));
  next();
  setTimeout(() => process.exit(called), 5_000).unref();
  server.on("close", () => console.log("called", called));
`;

it("calls a timer that need not keep the process in a process that has nothing else to wake it", async () => {
  using library = await compileLibrary();
  const url = `${library.url}engine/systemClock.js`;
  const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "-e", program, url]);
  expect(stdout).toBe("called 30\n");
});
