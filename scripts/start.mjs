// The first thing a newcomer runs: installs, builds, and shows what Politely does.
import { join } from "node:path";
import { root, run } from "./run.mjs";

const steps = [["scripts/prepare.mjs"], ["scripts/build.mjs"], ["packages/politely-cli/dist/bin.js", "demo"]];
process.exit(steps.every(([script, ...args]) => run(process.execPath, [join(root, script), ...args])) ? 0 : 1);
