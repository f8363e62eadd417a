import { readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "./run.mjs";

/**
 * What a program can import from one of our packages: the name to import, and the source file behind it. JSON files are left out.
 *
 * @param {string} name of the package, which is also the name of its folder
 * @returns {{ name: string; source: string }[]}
 */
export function publicEntries(name) {
  const folder = join(root, "packages", name);
  /** @type {{ exports: Record<string, string | { default: string }> }} */
  const { exports } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  return Object.entries(exports).flatMap(([entry, target]) => {
    if (typeof target === "string") return [];
    const source = target.default.replace(/^\.\/dist\/(.*)\.js$/, "src/$1.ts");
    return [{ name: `${name}${entry.slice(1)}`, source: join(folder, source) }];
  });
}
