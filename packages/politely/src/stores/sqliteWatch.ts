import type { SqliteHandle } from "./sqlite.js";

/** The part of `node:fs` that is called. */
interface Files {
  statSync(
    path: string,
    options: { readonly throwIfNoEntry: false },
  ): { readonly dev: number; readonly ino: number } | undefined;
}

/** A look at the file of an open handle. */
export interface SqliteWatch {
  readonly path: string;
  /** Whether whoever opens the path now gets another file, or none. */
  isMoved(): boolean;
}

/** Watches the file of a handle, from now on. One in memory never moves, nor does any where the platform cannot look. */
export function watchFile(handle: SqliteHandle): SqliteWatch {
  const { file } = (handle.prepare("PRAGMA database_list").get() ?? {}) as { readonly file?: unknown };
  const path = typeof file === "string" ? file : "";
  const { process } = globalThis as unknown as { readonly process?: { getBuiltinModule?(name: "node:fs"): Files } };
  const files = path === "" ? undefined : process?.getBuiltinModule?.("node:fs");
  if (files === undefined) return { path, isMoved: () => false };
  const first = nameOf(files, path);
  const isMoved = (): boolean => {
    const now = nameOf(files, path);
    return first !== undefined && now !== undefined && now !== first;
  };
  return { path, isMoved };
}

/** What tells a file from others; empty: there is none. Undefined where it cannot be told. */
function nameOf(files: Files, path: string): string | undefined {
  try {
    const found = files.statSync(path, { throwIfNoEntry: false });
    return found === undefined ? "" : `${found.dev} ${found.ino}`;
  } catch {
    return undefined;
  }
}
