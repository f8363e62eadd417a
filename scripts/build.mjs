// Compiles the packages into their dist folders, which are emptied first so that no file of an earlier build is packed, and puts the service's page beside its code.
import { rmSync } from "node:fs";
import { join } from "node:path";
import { root, tool } from "./run.mjs";

const packages = ["packages/politely", "packages/politely-cli"];
for (const name of packages) rmSync(join(root, name, "dist"), { recursive: true, force: true });
const isCompiled = packages.every((name) => tool("tsc", ["-p", name]));
const page = ["build", "--logLevel", "warn", "--config", "packages/politely-cli/page/vite.config.ts"];
process.exit(isCompiled && tool("vite", page) ? 0 : 1);
