// Packs packages/politely as npm would publish it, and checks what is in the file: its entries, its types, and that it loads.
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { npm, root, run, tool } from "./run.mjs";

const scratch = mkdtempSync(join(tmpdir(), "politely-package-"));
const isFine = pack() && checkAll();
rmSync(scratch, { recursive: true, force: true });
process.exit(isFine ? 0 : 1);

function pack() {
  return npm(["pack", "--silent", "--offline", "--workspace=politely", `--pack-destination=${scratch}`]);
}

function checkAll() {
  const file = readdirSync(scratch).find((name) => name.endsWith(".tgz"));
  if (file === undefined) {
    console.error("npm pack wrote no file.");
    return false;
  }
  const tarball = join(scratch, file);
  return [
    tool("publint", ["run", tarball, "--strict"]),
    tool("attw", [tarball, "--profile", "esm-only", "--no-emoji"]),
    loads(tarball),
  ].every(Boolean);
}

/**
 * Imports every entry from a folder that has nothing but the unpacked package and the dependencies it names.
 *
 * @param {string} tarball
 */
function loads(tarball) {
  const home = join(scratch, "node_modules", "politely");
  mkdirSync(home, { recursive: true });
  if (!run("tar", ["-xzf", tarball, "-C", home, "--strip-components=1"])) {
    return false;
  }
  const { exports, dependencies } = JSON.parse(readFileSync(join(root, "packages/politely/package.json"), "utf8"));
  for (const name of Object.keys(dependencies)) {
    symlinkSync(join(root, "node_modules", name), join(scratch, "node_modules", name));
  }
  const entries = Object.keys(exports).filter((entry) => !entry.endsWith(".json"));
  const program = entries.map((entry) => `await import("politely${entry.slice(1)}");`).join("\n");
  writeFileSync(join(scratch, "loads.mjs"), program);
  return run(process.execPath, [join(scratch, "loads.mjs")]);
}
