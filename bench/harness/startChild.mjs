// @ts-check
import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";

const CHILD = fileURLToPath(new URL("child.mjs", import.meta.url));
const NODE_FLAGS = ["--expose-gc", "--max-old-space-size=6144"];

/**
 * Measures `contender` once, in a process of its own that is stopped after `capMs`.
 *
 * @param {{ measure: string; contender: import("../measures/contenders.mjs").Contender; params: object; capMs: number; goProgram: string | undefined }} job
 * @returns {Promise<Record<string, number | string>>} the metrics, or `error`
 */
export async function startChild({ measure, contender, params, capMs, goProgram }) {
  const input = JSON.stringify({ ...params, ...contender.params });
  if (contender.isGo) {
    if (!goProgram) return { error: "left out: Go is not installed" };
    return readAnswer(goProgram, [measure, input], capMs);
  }
  const options = JSON.stringify(contender.options ?? {});
  return readAnswer(process.execPath, [...NODE_FLAGS, CHILD, measure, contender.rival ?? "", input, options], capMs);
}

/**
 * @param {string} command
 * @param {string[]} args
 * @param {number} capMs
 * @returns {Promise<Record<string, number | string>>}
 */
function readAnswer(command, args, capMs) {
  return new Promise((resolve) => {
    const child = spawn(command, args, { stdio: ["ignore", "pipe", "pipe"] });
    let isStopped = false;
    const stop = setTimeout(() => {
      isStopped = true;
      // It ends the servers that it has started; one that does not hear is ended the hard way.
      child.kill("SIGTERM");
      setTimeout(() => child.kill("SIGKILL"), 5_000).unref();
    }, capMs);
    let output = "";
    let complaint = "";
    child.stdout.on("data", (chunk) => (output += chunk));
    child.stderr.on("data", (chunk) => (complaint += chunk));
    child.on("error", (error) => resolve({ error: error.message }));
    child.on("close", (code) => {
      clearTimeout(stop);
      if (isStopped) return resolve({ error: `stopped after ${capMs / 1000} s` });
      try {
        resolve(JSON.parse(output));
      } catch {
        resolve({ error: `ended with code ${code}: ${complaint.trim().split("\n").at(-1) ?? ""}` });
      }
    });
  });
}
