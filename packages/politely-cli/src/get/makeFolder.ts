import { mkdirSync, statSync } from "node:fs";
import { dirname } from "node:path";

/**
 * Makes a folder and those above it that are missing; one that is there is fine. Throws what the file system throws.
 *
 * `mkdirSync` with `recursive` never returns where a folder can be seen and nothing can be made in it, as in `/proc`: it goes up to
 * the folder above and comes back for ever. This one goes up once.
 */
export function makeFolder(path: string): void {
  const missing: string[] = [];
  for (let at = path; !isFolder(at); at = dirname(at)) missing.push(at);
  for (const each of missing.reverse()) makeOne(each);
}

function isFolder(path: string): boolean {
  // The root is above all others: whatever is said of it, nobody goes further up.
  if (dirname(path) === path) return true;
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
}

function makeOne(path: string): void {
  try {
    mkdirSync(path);
  } catch (error) {
    // Somebody else was faster, and that is as good.
    if (!(error instanceof Error && "code" in error && error.code === "EEXIST" && isFolder(path))) throw error;
  }
}
