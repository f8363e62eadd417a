// Everything that has to hold before a change goes in. The last line says how many tests passed and failed.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { root, run, runBeside, tool } from "./run.mjs";
import { runSteps } from "./steps.mjs";

const scratch = mkdtempSync(join(tmpdir(), "politely-test-"));
const reportPath = join(scratch, "vitest.json");

/** @param {string} name */
const script = (name, /** @type {string[]} */ ...args) => run(process.execPath, [join(root, "scripts", name), ...args]);
/** @param {string} name */
const beside = (name, /** @type {string[]} */ ...args) => runBeside([join(root, "scripts", name), ...args]);
/** @param {string} project */
const types = (project) => tool("tsc", ["--noEmit", "-p", project]);

const failed = await runSteps([
  { name: "install", run: () => script("prepare.mjs") },
  { name: "build", needs: "install", run: () => script("build.mjs") },
  {
    name: "types",
    needs: "build",
    run: () =>
      [
        "packages/politely/test",
        "packages/politely-cli/test",
        "packages/politely-cli/page",
        "bench",
        "examples",
        "scripts",
        ".",
      ]
        .map(types)
        .every(Boolean),
  },
  { name: "lint", needs: "install", run: () => script("lint.mjs") },
  { name: "servers", needs: "install", run: () => script("servers.mjs") },
  {
    name: "tests",
    needs: "servers",
    run: () =>
      tool("vitest", [
        "run",
        "--allowOnly=false",
        "--reporter=default",
        "--reporter=json",
        `--outputFile.json=${reportPath}`,
      ]),
  },
  // They wait for npm, for the disk and for one another now and then: side by side they take little more than half the time.
  [
    { name: "package", needs: "build", run: () => beside("check-package.mjs") },
    { name: "docs", needs: "build", run: () => beside("check-docs.mjs") },
    { name: "readme", needs: "build", run: () => beside("check-readme.mjs") },
    { name: "versions of Node", needs: "build", run: () => beside("test-nodes.mjs", "--quick") },
    { name: "reference", needs: "build", run: () => beside("write-reference.mjs", "--check") },
    { name: "api", needs: "build", run: () => beside("api.mjs") },
    { name: "size", needs: "build", run: () => beside("check-size.mjs") },
  ],
]);

const { passed, broken } = countTests();
rmSync(scratch, { recursive: true, force: true });
if (failed.length > 0) {
  console.log(`\nNot fine: ${failed.join(", ")}.`);
}
console.log(`\n${passed} passed, ${broken} failed`);
process.exit(failed.length === 0 && passed > 0 && broken === 0 ? 0 : 1);

/** Counts by the report vitest wrote. A file that could not be loaded has no tests, and counts as one failure. */
function countTests() {
  try {
    const report = JSON.parse(readFileSync(reportPath, "utf8"));
    const unloaded = report.testResults.filter(
      (/** @type {{ status: string; assertionResults: unknown[] }} */ file) =>
        file.status === "failed" && file.assertionResults.length === 0,
    ).length;
    return { passed: report.numPassedTests, broken: report.numFailedTests + unloaded };
  } catch {
    return { passed: 0, broken: 0 };
  }
}
