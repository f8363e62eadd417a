import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { npm, root } from "../run.mjs";

/** What the installed command is asked, and what it has to answer. */
const questions = [
  { args: ["--version"], answer: new RegExp(`^${version().replaceAll(".", "\\.")}$`, "m") },
  { args: ["demo", "--help"], answer: /^Usage: politely demo/m },
  { args: ["presets"], answer: /crates-io/ },
  { args: ["serve", "--help"], answer: /--proxy-port/ },
];

/**
 * Installs the packed files into an empty project with npm, and runs the command. npm takes what its cache has, and asks the registry
 * for the rest.
 *
 * @param {readonly string[]} tarballs
 * @param {string} folder of the project, which exists and is empty
 * @returns {boolean}
 */
export function installedCommandRuns(tarballs, folder) {
  writeFileSync(join(folder, "package.json"), JSON.stringify({ private: true }));
  const flags = ["--prefer-offline", "--no-audit", "--no-fund", "--omit=dev", "--loglevel=error"];
  if (!npm(["install", "--prefix", folder, ...flags, ...tarballs])) {
    console.error(
      "npm could not install the packed packages. Their dependencies come from the registry: is it reachable?",
    );
    return false;
  }
  return questions.map(({ args, answer }) => answers(folder, args, answer)).every(Boolean);
}

/**
 * @param {string} folder
 * @param {readonly string[]} args
 * @param {RegExp} expected
 */
function answers(folder, args, expected) {
  const command = join(folder, "node_modules", ".bin", process.platform === "win32" ? "politely.cmd" : "politely");
  const { status, stdout, stderr } = spawnSync(command, args, {
    cwd: folder,
    encoding: "utf8",
    timeout: 30_000,
    shell: process.platform === "win32",
  });
  const isRight = status === 0 && expected.test(stdout ?? "");
  if (!isRight) {
    console.error(
      `politely ${args.join(" ")} ended with ${status}, and its output is not ${expected}:\n${stdout}\n${stderr}`,
    );
  }
  return isRight;
}

function version() {
  return JSON.parse(readFileSync(join(root, "packages/politely-cli/package.json"), "utf8")).version;
}
