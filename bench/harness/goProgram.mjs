// @ts-check
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync } from "node:fs";
import { fileURLToPath } from "node:url";

const SOURCE = fileURLToPath(new URL("../go", import.meta.url));
const PROGRAM = fileURLToPath(new URL("../dist/go-bench", import.meta.url));
const GOPATH = "/usr/share/gocode";
const PACKAGES = ["golang-go", "golang-golang-x-time-dev"];

/**
 * Builds the Go rival from Debian's packages, without network. As root, missing packages are installed first.
 *
 * @returns {{ program?: string; version?: string; note?: string }} without `program`: `note` says what to do
 */
export function buildGoProgram() {
  if (!isInstalled() && process.getuid?.() === 0) {
    run("apt-get", ["update"]);
    run("apt-get", ["install", "-y", "--no-install-recommends", ...PACKAGES]);
  }
  if (!isInstalled()) return { note: `The Go rows are left out. To have them: apt-get install ${PACKAGES.join(" ")}` };
  mkdirSync(fileURLToPath(new URL("../dist", import.meta.url)), { recursive: true });
  const built = run("go", ["build", "-o", PROGRAM, "."], { cwd: SOURCE, env: goEnvironment() });
  if (built.status !== 0) return { note: `The Go rows are left out: the build failed: ${built.stderr.trim()}` };
  return { program: PROGRAM, version: run("go", ["env", "GOVERSION"]).stdout.trim() };
}

function isInstalled() {
  return run("go", ["version"]).status === 0 && existsSync(`${GOPATH}/src/golang.org/x/time/rate`);
}

function goEnvironment() {
  return { ...process.env, GO111MODULE: "off", GOPATH, GOFLAGS: "", CGO_ENABLED: "0" };
}

/** @param {string} command @param {string[]} args @param {object} [options] */
function run(command, args, options = {}) {
  return spawnSync(command, args, { encoding: "utf8", ...options });
}
