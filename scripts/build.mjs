// Compiles the packages and the examples into their dist folders, which are emptied first so that no file of an earlier build is packed, and puts the service's page beside its code.
import { rmSync } from "node:fs";
import { join } from "node:path";
import { root, tool } from "./run.mjs";

const folders = ["packages/politely", "packages/politely-cli", "examples"];
const projects = ["packages/politely", "packages/politely-cli", "examples/tsconfig.build.json"];
for (const folder of folders) rmSync(join(root, folder, "dist"), { recursive: true, force: true });
const isCompiled = projects.every((project) => tool("tsc", ["-p", project]));
const page = ["build", "--logLevel", "warn", "--config", "packages/politely-cli/page/vite.config.ts"];
process.exit(isCompiled && tool("vite", page) ? 0 : 1);
