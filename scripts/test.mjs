// Everything that has to hold before a change goes in. The last line says how many tests passed and failed.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { root, runBeside, toolBeside } from "./run.mjs";
import { runSteps } from "./steps.mjs";

const scratch = mkdtempSync(join(tmpdir(), "politely-test-"));
const reportPath = join(scratch, "vitest.json");

/** @param {string} name */
const script = (name, /** @type {string[]} */ ...args) => runBeside([join(root, "scripts", name), ...args]);

// What waits for a network or for the disk goes beside what works. Tests come last, since some of them judge time; what still waits for the registry
// then has nothing to do.
const quick = ["types", "lint", "docs", "readme", "reference", "api", "size"];
const failed = await runSteps([
  { name: "install", run: () => script("prepare.mjs") },
  { name: "servers", run: () => script("servers.mjs") },
  { name: "build", needs: ["install"], run: () => script("build.mjs") },
  { name: "package", needs: ["build"], run: () => script("check-package.mjs") },
  { name: "versions of Node", needs: ["build"], run: () => script("test-nodes.mjs", "--quick") },
  { name: "types", needs: ["build"], run: () => script("check-types.mjs") },
  { name: "lint", needs: ["install"], after: ["build"], run: () => script("lint.mjs") },
  { name: "docs", needs: ["build"], run: () => script("check-docs.mjs") },
  { name: "readme", needs: ["build"], run: () => script("check-readme.mjs") },
  { name: "reference", needs: ["build"], run: () => script("write-reference.mjs", "--check") },
  { name: "api", needs: ["build"], run: () => script("api.mjs") },
  { name: "size", needs: ["build"], run: () => script("check-size.mjs") },
  {
    name: "tests",
    needs: ["build", "servers"],
    after: quick,
    run: () =>
      toolBeside("vitest", [
        "run",
        "--allowOnly=false",
        "--reporter=default",
        "--reporter=json",
        `--outputFile.json=${reportPath}`,
      ]),
  },
]);

const { passed, broken, flaky } = countTests();
rmSync(scratch, { recursive: true, force: true });
if (failed.length > 0) {
  console.log(`\nNot fine: ${failed.join(", ")}.`);
}
for (const { title, error } of flaky) console.log(`\nPassed at the second try only: ${title}\n  ${error}`);
console.log(`\n${passed} passed, ${broken} failed`);
process.exit(failed.length === 0 && passed > 0 && broken === 0 ? 0 : 1);

/** Counts by the report vitest wrote. A file that could not be loaded has no tests, and counts as one failure. */
function countTests() {
  /** @typedef {{ fullName: string; status: string; failureMessages: string[] }} Test */
  try {
    /** @type {{ numPassedTests: number; numFailedTests: number; testResults: { status: string; assertionResults: Test[] }[] }} */
    const report = JSON.parse(readFileSync(reportPath, "utf8"));
    const files = report.testResults;
    const unloaded = files.filter(
      ({ status, assertionResults }) => status === "failed" && assertionResults.length === 0,
    );
    const flaky = files
      .flatMap(({ assertionResults }) => assertionResults)
      .filter(({ status, failureMessages }) => status === "passed" && failureMessages.length > 0)
      .map(({ fullName, failureMessages }) => ({ title: fullName, error: failureMessages[0]?.split("\n")[0] }));
    return { passed: report.numPassedTests, broken: report.numFailedTests + unloaded.length, flaky };
  } catch {
    return { passed: 0, broken: 0, flaky: [] };
  }
}
