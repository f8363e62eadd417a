import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Database from "libsql";

/** A folder for one test, and handles on a database in it. */
export interface TemporaryFile extends Disposable {
  readonly folder: string;
  /** Of the database, which need not exist yet. */
  readonly path: string;
  /** A new handle, which is closed in the end. Commits are not flushed to the disk one by one. */
  open(): Database.Database;
}

/** Makes a folder. Disposing of it closes all handles and removes it. */
export function temporaryFile(): TemporaryFile {
  const folder = mkdtempSync(join(tmpdir(), "politely-sqlite-"));
  const path = join(folder, "limits.db");
  const handles: Database.Database[] = [];
  return {
    folder,
    path,
    open() {
      const handle = new Database(path);
      handle.exec("PRAGMA synchronous = NORMAL");
      handles.push(handle);
      return handle;
    },
    [Symbol.dispose]() {
      for (const handle of handles) handle.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
