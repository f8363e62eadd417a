// Installs what package-lock.json asks for, if it is not there yet. Needs nothing but Node and npm.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { npm, root } from "./run.mjs";

/** @typedef {{ version?: string; integrity?: string; optional?: boolean; devOptional?: boolean }} Entry */

const problem = nodeProblem(process.versions.node) ?? installProblem();
if (problem?.kind === "node") {
  console.error(problem.message);
  process.exit(1);
}
if (problem !== undefined) {
  console.log(`Installing: ${problem.message}.`);
  // `--include` because a NODE_ENV of "production" would leave the tools out.
  process.exit(npm(["ci", "--no-audit", "--no-fund", "--include=dev"]) ? 0 : 1);
}

/** @param {string} version */
function nodeProblem(version) {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  return major > 20 || (major === 20 && minor >= 19)
    ? undefined
    : { kind: "node", message: `Politely needs Node 20.19 or later; this is Node ${version}.` };
}

/**
 * Compares what npm says it installed with what the lockfile asks for.
 *
 * Optional packages may be missing: most of them are for other systems.
 */
function installProblem() {
  const wanted = packagesOf("package-lock.json");
  const installed = packagesOf(join("node_modules", ".package-lock.json"));
  if (installed === undefined) {
    return { kind: "install", message: "nothing is installed yet" };
  }
  for (const [path, entry] of Object.entries(wanted ?? {})) {
    const found = installed[path];
    if (path === "" || (found === undefined && (entry.optional || entry.devOptional))) {
      continue;
    }
    if (found === undefined || found.version !== entry.version || found.integrity !== entry.integrity) {
      return { kind: "install", message: `${path.replace(/^.*node_modules\//, "")} differs from package-lock.json` };
    }
  }
  return undefined;
}

/**
 * @param {string} path
 * @returns {Record<string, Entry> | undefined}
 */
function packagesOf(path) {
  try {
    return JSON.parse(readFileSync(join(root, path), "utf8")).packages;
  } catch {
    return undefined;
  }
}
