// Runs the compiled program of an example: `node scripts/example.mjs site-archiver/src/main.js --verbose`. What is missing is installed and built first.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { root, run } from "../../scripts/run.mjs";

const [name, ...args] = process.argv.slice(2);
if (name === undefined) {
  console.error("Say which program to run: node scripts/example.mjs site-archiver/src/main.js");
  process.exit(2);
}
const program = fileURLToPath(new URL(`../dist/${name}`, import.meta.url));
const needed = [program, join(root, "packages/politely/dist/index.js")];
if (!needed.every((path) => existsSync(path))) {
  const steps = ["scripts/prepare.mjs", "scripts/build.mjs"];
  if (!steps.every((script) => run(process.execPath, [join(root, script)]))) process.exit(1);
}
if (!existsSync(program)) {
  console.error(`There is no example ${name}. package.json beside this folder lists those there are.`);
  process.exit(2);
}
process.argv = [process.execPath, program, ...args];
await import(pathToFileURL(program).href);
