import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { Place } from "./place.js";

/** A small disk of its own. It is gone with `Symbol.dispose`. */
export interface Disk extends Disposable {
  readonly path: string;
}

/** Mounts a disk in memory of a size such as `1m` as a folder of the place. Needs a user who may, which `canMount` tells. */
export function mountTmpfs(place: Place, name: string, size: string): Disk {
  const path = join(place.path, name);
  mkdirSync(path);
  execFileSync("mount", ["-t", "tmpfs", "-o", `size=${size}`, "tmpfs", path], { stdio: "pipe" });
  return { path, [Symbol.dispose]: () => void spawnSync("umount", ["-l", path]) };
}

/** Whether this user may mount disks: root, and not in every container. */
export function canMount(): boolean {
  using place = new Place();
  try {
    mountTmpfs(place, "try", "64k")[Symbol.dispose]();
    return true;
  } catch {
    return false;
  }
}
