import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";

/** @typedef {{ atMs: number; lines: readonly string[] }} Frame what a terminal shows from `atMs` on, each line with its colour codes */

const everyMs = 400;
/** A program that has not ended by then is not one to be shown. */
const longestMs = 120_000;

/**
 * Runs a shell command in a real terminal without a screen (tmux), and looks at it until the command has ended.
 *
 * Looks that show nothing new are left out; the last frame is what was left on the screen. Throws when the command fails or takes two minutes.
 *
 * @param {string} command
 * @param {{ columns: number; rows: number }} size
 * @returns {Promise<Frame[]>}
 */
export async function record(command, { columns, rows }) {
  const folder = mkdtempSync(join(tmpdir(), "politely-record-"));
  const statusFile = join(folder, "status");
  const tmux = (/** @type {string[]} */ ...args) =>
    execFileSync("tmux", ["-u", "-f", "/dev/null", "-S", join(folder, "socket"), ...args], { encoding: "utf8" });
  const size = ["-x", String(columns), "-y", String(rows)];
  const environment = ["-e", "LANG=C.UTF-8", "-e", "TERM=screen-256color"];
  // `cat` keeps the pane open until the end has been looked at.
  tmux("new-session", "-d", ...size, ...environment, `unset CI NO_COLOR; ${command}; echo $? > ${statusFile}; cat`);
  const look = () => tmux("capture-pane", "-p", "-e").split("\n").slice(0, rows);
  try {
    const frames = await watch(look, () => existsSync(statusFile));
    const status = readFileSync(statusFile, "utf8").trim();
    if (status !== "0") throw new Error(`"${command}" ended with ${status}:\n${frames.at(-1)?.lines.join("\n")}`);
    return frames;
  } finally {
    tmux("kill-server");
    rmSync(folder, { recursive: true, force: true });
  }
}

/**
 * @param {() => string[]} look
 * @param {() => boolean} isOver
 * @returns {Promise<Frame[]>}
 */
async function watch(look, isOver) {
  /** @type {Frame[]} */
  const frames = [];
  const begin = performance.now();
  for (let atMs = 0; atMs < longestMs; atMs = performance.now() - begin) {
    const isLast = isOver();
    const lines = look();
    if (lines.join("\n") !== frames.at(-1)?.lines.join("\n")) frames.push({ atMs, lines });
    if (isLast) return frames;
    await delay(everyMs);
  }
  throw new Error(`The program had not ended after ${longestMs / 1_000} s.`);
}
