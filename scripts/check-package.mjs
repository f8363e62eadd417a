// Packs both packages as npm would publish them, and checks what is in the files: their entries, their types, that they load in a
// project that has nothing else, and that the command runs once npm has installed it.
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { installedCommandRuns } from "./package/command.mjs";
import { hasTypes, loads, makeProject } from "./package/empty-project.mjs";
import { holds, pack } from "./package/pack.mjs";
import { tool } from "./run.mjs";

const scratch = mkdtempSync(join(tmpdir(), "politely-package-"));
const isFine = check();
rmSync(scratch, { recursive: true, force: true });
process.exit(isFine ? 0 : 1);

function check() {
  const library = pack("politely", scratch);
  const command = pack("politely-cli", scratch);
  if (library === undefined || command === undefined) return false;
  const project = folder("library");
  return [
    holds(library, ["LICENSE", "README.md", "package.json", "schema/policy.schema.json"]),
    holds(command, ["LICENSE", "README.md", "THIRD-PARTY.md", "package.json", "dist/bin.js", "dist/page/index.html"]),
    tool("publint", ["run", library, "--strict"]),
    tool("publint", ["run", command, "--strict"]),
    typesResolve(library),
    makeProject(library, project) && [loads(project), hasTypes(project)].every(Boolean),
    installedCommandRuns([library, command], folder("command")),
  ].every(Boolean);
}

/** @param {string} library */
function typesResolve(library) {
  const args = [library, "--profile", "esm-only", "--no-emoji"];
  // The table of 23 entries is of use only when something is wrong in it.
  return tool("attw", [...args, "--quiet"]) || tool("attw", args);
}

/** @param {string} name */
function folder(name) {
  const path = join(scratch, name);
  mkdirSync(path);
  return path;
}
