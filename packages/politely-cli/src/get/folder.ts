import { accessSync, closeSync, constants, openSync } from "node:fs";
import { join } from "node:path";
import { UsageError, WorkError } from "../errors.js";
import { Ballast } from "./ballast.js";
import { BodyFiles } from "./bodyFiles.js";
import { IndexFile } from "./indexFile.js";
import { Journal } from "./journal.js";
import { makeFolder } from "./makeFolder.js";
import { dropLists } from "./queue/sqliteStatements.js";
import { closeExclusive, isBusy, isDamaged, openSqlite, type SqliteDatabase } from "./sqlite.js";

/** The folder of a run, opened. Nobody else has it open. */
export interface Folder {
  readonly path: string;
  /** `journal.db`: the list and what is known of the pages. */
  readonly database: SqliteDatabase;
  readonly journal: Journal;
  readonly index: IndexFile;
  /** Lines of the index are gone that the journal knew of. The list of the folder is empty then: only the lines that are left count as finished. */
  readonly hasLostLines: boolean;
  readonly files: BodyFiles;
  /** Room for the index and the journal when the disk is full. */
  readonly ballast: Ballast;
  close(): Promise<void>;
}

/** Opens or creates a folder. Throws `UsageError` when it cannot be written, and `WorkError` when another process works in it. */
export function openFolder(path: string): Folder {
  const database = openJournal(path);
  try {
    const journal = new Journal(database);
    const index = new IndexFile(join(path, "index.jsonl"));
    const hasLostLines = index.bytes < journal.indexBytes;
    if (hasLostLines) dropLists(database);
    const ballast = new Ballast(join(path, ".ballast"));
    const files = new BodyFiles(path);
    return {
      path,
      database,
      journal,
      index,
      hasLostLines,
      files,
      ballast,
      async close() {
        await files.close();
        ballast.drop();
        index.close();
        closeExclusive(database);
      },
    };
  } catch (error) {
    closeExclusive(database);
    throw unusable(path, error, "journal.db");
  }
}

function openJournal(path: string): SqliteDatabase {
  try {
    makeFolder(path);
    tryToWrite(path);
    return openSqlite(join(path, "journal.db"), { isExclusive: true });
  } catch (error) {
    if (isBusy(error)) {
      throw new WorkError(`another politely works in ${path} now. Wait for it, or name another folder with --out.`);
    }
    throw unusable(path, error, "journal.db");
  }
}

/** Throws what the file system says where something cannot be written: SQLite would say a number, and some of it later. */
function tryToWrite(path: string): void {
  accessSync(path, constants.W_OK | constants.X_OK);
  for (const name of ["journal.db", "limits.db", "index.jsonl"]) closeSync(openSync(join(path, name), "a"));
}

/** What becomes of a folder without one of its files. */
const WITHOUT = {
  "journal.db": "the same command then goes on by index.jsonl",
  "limits.db": "what the limits remember is lost then, and nothing else",
} as const;

/** What to throw when something in the folder cannot be opened; when it is a database that is damaged, that is `name`. */
export function unusable(path: string, error: unknown, name: keyof typeof WITHOUT): UsageError {
  const problem = error instanceof Error ? error.message : String(error);
  if (isDamaged(error))
    return new UsageError(`${join(path, name)} is damaged: ${problem}. Remove it: ${WITHOUT[name]}.`);
  return new UsageError(`the folder ${path} cannot be used: ${problem}. Name another one with --out.`);
}
