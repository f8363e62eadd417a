// Compiles packages/politely into its dist folder, which is emptied first so that no file of an earlier build is packed.
import { rmSync } from "node:fs";
import { join } from "node:path";
import { root, tool } from "./run.mjs";

rmSync(join(root, "packages/politely/dist"), { recursive: true, force: true });
process.exit(tool("tsc", ["-p", "packages/politely"]) ? 0 : 1);
