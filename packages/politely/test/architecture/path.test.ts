import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { compileLibrary } from "../fleet/compileLibrary.js";

// Prints the files of the library of which a function is called while one task runs, its release included.
const program = `
  import { Session } from "node:inspector/promises";
  const [, base] = process.argv;
  const { politely } = await import(base + "index.js");
  const polite = politely({ default: { rate: "1000/s", burst: 1000 } });
  const task = () => undefined;
  for (const host of ["example.com", "other.example"]) for (let i = 0; i < 3; i++) await polite.run(host, task);
  const session = new Session();
  session.connect();
  await session.post("Profiler.enable");
  await session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: false });
  await session.post("Profiler.takePreciseCoverage");
  await polite.run("example.com", task);
  const { result } = await session.post("Profiler.takePreciseCoverage");
  const isUsed = ({ functions }) => functions.some(({ ranges: [{ count }] }) => count > 0);
  console.log(JSON.stringify(result.filter(({ url }) => url.startsWith(base)).filter(isUsed).map(({ url }) => url.slice(base.length))));
`;

describe("the path of a task on a known host", () => {
  it("calls functions of at most ten files, grant, answer and release included", async () => {
    using library = await compileLibrary();
    const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "-e", program, library.url]);
    const files = JSON.parse(stdout) as string[];
    expect(files).toContain("engine/limiter.js");
    // What comes after the tenth.
    expect(files.slice(10)).toEqual([]);
  });
});
