// Runs the packed library and the tests on every version of Node that is supported; npx brings the versions. `--quick` loads every entry and
// makes a few calls, the whole run is the everyday tests and those of HTTP too: about ten minutes. Needs the build, and the registry for versions that npx has not brought before.
import { spawnSync } from "node:child_process";
import { copyFileSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loads, makeProject } from "./package/empty-project.mjs";
import { pack } from "./package/pack.mjs";
import { root, run } from "./run.mjs";
import { runSteps } from "./steps.mjs";

const versions = [20, 22, 24, 26];
const isQuick = process.argv.includes("--quick");
const vitest = join(root, "node_modules", "vitest", "vitest.mjs");

const scratch = mkdtempSync(join(tmpdir(), "politely-nodes-"));
const failed = isPrepared() ? await runSteps(oneByOne(versions.flatMap(stepsOf))) : ["pack"];
rmSync(scratch, { recursive: true, force: true });
if (failed.length > 0) console.error(`\nNot fine: ${failed.join(", ")}.`);
process.exit(failed.length === 0 ? 0 : 1);

/** A project with the packed library, and with libsql for Nodes that have no SQLite of their own. */
function isPrepared() {
  const library = pack("politely", scratch);
  if (library === undefined || !makeProject(library, scratch)) return false;
  symlinkSync(join(root, "node_modules", "libsql"), join(scratch, "node_modules", "libsql"));
  copyFileSync(join(root, "scripts", "package", "smoke.mjs"), join(scratch, "smoke.mjs"));
  return true;
}

/**
 * @param {number} version
 * @returns {import("./steps.mjs").Step[]}
 */
function stepsOf(version) {
  const node = fetchNode(version);
  const name = (/** @type {string} */ what) => `${what} on Node ${version}`;
  if (node === undefined) return [{ name: name("a run"), run: () => false }];
  const quick = {
    name: name("a few calls"),
    run: () => loads(scratch, node) && run(node, [join(scratch, "smoke.mjs")]),
  };
  if (isQuick) return [quick];
  return [
    quick,
    { name: name("everyday tests"), run: () => run(node, [vitest, "run", "--config", "vitest.unit.config.ts"]) },
    { name: name("tests of HTTP"), run: () => run(node, [vitest, "run", "packages/politely/test/http"]) },
  ];
}

/**
 * Each after the one before it.
 *
 * @param {readonly import("./steps.mjs").Step[]} steps
 * @returns {import("./steps.mjs").Step[]}
 */
function oneByOne(steps) {
  return steps.map((step, index) => ({
    ...step,
    after: steps.slice(Math.max(0, index - 1), index).map(({ name }) => name),
  }));
}

/**
 * Where npx keeps the newest Node of a major version. Undefined, with a word about it, when it cannot be had.
 *
 * @param {number} version
 * @returns {string | undefined}
 */
function fetchNode(version) {
  if (process.versions.node.startsWith(`${version}.`)) return process.execPath;
  const npx = process.platform === "win32" ? "npx.cmd" : "npx";
  const args = ["--yes", "--prefer-offline", "--package", `node@${version}`, "--", "node", "-p", "process.execPath"];
  const { stdout, stderr } = spawnSync(npx, args, {
    cwd: scratch,
    encoding: "utf8",
    timeout: 300_000,
    shell: npx.endsWith(".cmd"),
  });
  const path = stdout?.trim() ?? "";
  if (path === "") console.error(`npx could not bring Node ${version}; is the registry reachable?\n${stderr ?? ""}`);
  return path === "" ? undefined : path;
}
