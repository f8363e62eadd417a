import { statSync } from "node:fs";
import { resolve } from "node:path";
import { UsageError } from "./errors.js";

/** A file that an option names to be written. */
export interface Written {
  /** As it is spelled: `--receipt`. */
  readonly option: string;
  readonly path: string;
}

/**
 * Throws `UsageError` when a file that is to be written has no name or is one of those that are read, also under another name. Paths are
 * relative to `cwd`; an empty one of those is no file.
 */
export function keepRead({ option, path }: Written, read: readonly string[], cwd: string): void {
  if (path === "") throw new UsageError(`${option} takes the name of a file; got ""`);
  const written = fileId(resolve(cwd, path));
  const isRead = written !== undefined && read.some((each) => each !== "" && fileId(resolve(cwd, each)) === written);
  if (isRead) throw new UsageError(`${option} ${path} would replace a file that is read; name another one.`);
}

/** Tells a file by what it is, whatever it is called; undefined where there is none. */
export function fileId(path: string): string | undefined {
  try {
    // Some file systems have numbers that a double rounds.
    const { dev, ino } = statSync(path, { bigint: true });
    return `${dev}:${ino}`;
  } catch {
    return undefined;
  }
}
