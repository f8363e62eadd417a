// Checks the types of everything that is not built: tests, benchmarks, examples and scripts.
import { tool } from "./run.mjs";

const projects = [
  "packages/politely/test",
  "packages/politely-cli/test",
  "packages/politely-cli/page",
  "bench",
  "examples",
  "scripts",
  ".",
];
process.exit(projects.map((project) => tool("tsc", ["--noEmit", "-p", project])).every(Boolean) ? 0 : 1);
