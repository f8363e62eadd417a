import { spawnSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { npm, root } from "../run.mjs";

/**
 * Packs a package as npm would publish it, and returns the path of the file. Needs no network. Undefined when npm wrote none.
 *
 * @param {string} name
 * @param {string} folder where the file goes
 * @returns {string | undefined}
 */
export function pack(name, folder) {
  if (!npm(["pack", "--silent", "--offline", `--workspace=${name}`, `--pack-destination=${folder}`])) return undefined;
  // "politely-0.1.0.tgz" and "politely-cli-0.1.0.tgz" begin alike; only a digit can follow the name.
  const file = readdirSync(folder).find(
    (each) => each.startsWith(`${name}-`) && /^\d/.test(each.slice(name.length + 1)),
  );
  if (file === undefined) {
    console.error(`npm pack wrote no file for ${name}.`);
    return undefined;
  }
  return join(folder, file);
}

/**
 * Tells whether the packed file holds all these paths, and says which are missing.
 *
 * @param {string} tarball
 * @param {readonly string[]} paths from the package's folder
 */
export function holds(tarball, paths) {
  const { stdout } = spawnSync("tar", ["-tzf", tarball], { cwd: root, encoding: "utf8" });
  const present = new Set(stdout.split("\n").map((path) => path.replace(/^package\//, "")));
  const missing = paths.filter((path) => !present.has(path));
  if (missing.length > 0) console.error(`${tarball} lacks ${missing.join(", ")}.`);
  return missing.length === 0;
}
