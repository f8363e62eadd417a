import { spawn, spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** The folder of the whole project. */
export const root = fileURLToPath(new URL("..", import.meta.url));

/**
 * Runs a command in the project's folder, with its output passed through, and tells whether it succeeded.
 *
 * @param {string} command
 * @param {readonly string[]} args
 * @returns {boolean}
 */
export function run(command, args) {
  // Windows starts a .cmd file through its shell only.
  const result = spawnSync(command, args, { cwd: root, stdio: "inherit", shell: command.endsWith(".cmd") });
  if (result.error !== undefined) {
    console.error(`Could not start ${command}: ${result.error.message}`);
  }
  return result.status === 0;
}

/**
 * Runs a script of Node in the project's folder beside whatever else runs, and resolves with what it printed once it has ended.
 *
 * @param {readonly string[]} args
 * @returns {Promise<import("./steps.mjs").Outcome>}
 */
export function runBeside(args) {
  const child = spawn(process.execPath, args, { cwd: root, stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (text) => {
      output += text;
    });
  }
  return new Promise((resolve) => {
    child.once("error", (error) => {
      resolve({ isFine: false, output: `Could not start ${process.execPath}: ${error.message}\n` });
    });
    child.once("close", (code) => resolve({ isFine: code === 0, output }));
  });
}

/**
 * Runs a tool that the workspace has installed, with its output passed through, beside whatever else runs. Resolves to whether it succeeded.
 *
 * @param {string} name
 * @param {readonly string[]} args
 * @returns {Promise<boolean>}
 */
export function toolBeside(name, args) {
  const child = spawn(toolPath(name), args, { cwd: root, stdio: "inherit", shell: process.platform === "win32" });
  return new Promise((resolve) => {
    child.once("error", (error) => {
      console.error(`Could not start ${name}: ${error.message}`);
      resolve(false);
    });
    child.once("close", (code) => resolve(code === 0));
  });
}

/**
 * Runs npm: the very one that started this script, where one did.
 *
 * @param {readonly string[]} args
 * @returns {boolean}
 */
export function npm(args) {
  const self = process.env.npm_execpath;
  if (self !== undefined && /\.[cm]?js$/.test(self)) {
    return run(process.execPath, [self, ...args]);
  }
  return run(process.platform === "win32" ? "npm.cmd" : "npm", args);
}

/**
 * Runs a tool that the workspace has installed, by the name of its command.
 *
 * @param {string} name
 * @param {readonly string[]} args
 * @returns {boolean}
 */
export function tool(name, args) {
  const path = toolPath(name);
  if (!existsSync(path)) {
    console.error(`${name} is not installed. Run: node scripts/prepare.mjs`);
    return false;
  }
  return run(path, args);
}

/** @param {string} name */
function toolPath(name) {
  return join(root, "node_modules", ".bin", process.platform === "win32" ? `${name}.cmd` : name);
}
