// @ts-check
import { readFileSync } from "node:fs";
import { availableParallelism, cpus, loadavg, totalmem, type } from "node:os";

/** What the numbers were made on and with. @param {string | undefined} goVersion */
export function describeRun(goVersion) {
  return {
    date: new Date().toISOString(),
    machine: {
      processor: cpus()[0]?.model.trim() ?? "unknown",
      cores: availableParallelism(),
      memoryGB: Math.round(totalmem() / 2 ** 30),
      system: type(),
      loadAtStart: loadavg()[0],
    },
    node: process.version,
    go: goVersion ?? null,
    rivals: rivalVersions(),
  };
}

/** Exact versions, as pinned in this package. @returns {Record<string, string>} */
function rivalVersions() {
  return JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8")).dependencies;
}
