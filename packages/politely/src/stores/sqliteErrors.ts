import { StoreError } from "../errors.js";

/** For each kind of failure SQLite's number, what to say, and whether somebody has to mend it; the others may pass. The names are those of SQLite's result codes. */
const FAILURES: Readonly<Record<string, readonly [number, string, boolean?]>> = {
  PERM: [3, "This user may not use the SQLite file. Allow it to read and write the file and its folder.", true],
  BUSY: [5, "The SQLite file is in use by another process. End what holds it, or raise busyMs."],
  LOCKED: [6, "The SQLite table is locked by another statement of this process. Give the store its own handle."],
  NOMEM: [7, "There is no memory left for SQLite. Give the process more."],
  READONLY: [8, "The SQLite file is read-only. Open it for writing, and allow this user to write to its folder.", true],
  IOERR: [10, "The SQLite file could not be read or written. Look at the disk."],
  CORRUPT: [11, "The SQLite file is damaged. Remove it, or put a copy in its place.", true],
  FULL: [13, "There is no room left on the disk for the SQLite file. Make room."],
  CANTOPEN: [14, "The SQLite file cannot be opened. Check that its folder exists and may be read and written.", true],
  AUTH: [23, "The SQLite handle does not allow what the store does. Pass one without an authorizer.", true],
  NOTADB: [26, "The file is no SQLite database, or it is encrypted. Name another path.", true],
};

/** Tells whether a failure passes when others let go of the file. */
export function isBusy(error: unknown): boolean {
  return nameOf(error) === "BUSY" || nameOf(error) === "LOCKED";
}

/** Makes a `StoreError` of what a client threw, with what happened and what to do. One that is a `StoreError` already stays as it is. */
export function sqliteError(error: unknown, table: string): StoreError {
  if (error instanceof StoreError) return error;
  const [, words, isLasting] = FAILURES[nameOf(error) ?? ""] ?? [];
  if (words !== undefined) return new StoreError(words, { cause: error, isLasting: isLasting === true });
  const message = error instanceof Error ? error.message : String(error);
  const mistake = mistakeIn(message, table);
  return new StoreError(mistake ?? `SQLite failed: ${message}`, { cause: error, isLasting: mistake !== undefined });
}

/** Failures that SQLite or the client tells apart by the message alone: the program has to be changed. */
function mistakeIn(message: string, table: string): string | undefined {
  if (/not open|closed|finalized/i.test(message))
    return "The SQLite handle is closed. Keep it open as long as a limiter uses it.";
  if (/within a transaction/i.test(message))
    return "The SQLite handle is in the middle of a transaction of yours. Give the store a handle of its own.";
  if (/no such (table|column)|has no column|ON CONFLICT|view/i.test(message))
    return `The tables ${table} and ${table}_clock are not as politely makes them (${message}). Remove them, or name another table.`;
  return undefined;
}

/** `"BUSY"` for all of SQLITE_BUSY and its variants. Clients say it with a name or a number, each under a key of its own. */
function nameOf(error: unknown): string | undefined {
  const { code, errcode, rawCode, errno } = (error ?? {}) as Readonly<Record<string, unknown>>;
  const name = typeof code === "string" ? /^SQLITE_([A-Z]+)/.exec(code)?.[1] : undefined;
  const number = [errcode, rawCode, errno].find((value) => typeof value === "number");
  // The low byte is the kind; the rest tells variants apart.
  return name ?? Object.keys(FAILURES).find((kind) => number !== undefined && FAILURES[kind][0] === (number & 0xff));
}
