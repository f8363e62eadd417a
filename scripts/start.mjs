// The first thing a newcomer runs: installs, builds, and shows what Politely does.
import { join } from "node:path";
import { root, run } from "./run.mjs";

const scripts = [join("scripts", "prepare.mjs"), join("scripts", "build.mjs"), join("examples", "demo", "demo.mjs")];
process.exit(scripts.every((script) => run(process.execPath, [join(root, script)])) ? 0 : 1);
