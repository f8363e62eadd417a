// Compiles the packages into their dist folders, which are emptied first so that no file of an earlier build is packed.
import { rmSync } from "node:fs";
import { join } from "node:path";
import { root, tool } from "./run.mjs";

const packages = ["packages/politely", "packages/politely-cli"];
for (const name of packages) rmSync(join(root, name, "dist"), { recursive: true, force: true });
process.exit(packages.every((name) => tool("tsc", ["-p", name])) ? 0 : 1);
