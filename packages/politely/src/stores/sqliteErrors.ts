import { StoreError } from "../errors.js";

/** What to say for each kind of failure. The names are those of SQLite's result codes. */
const sentences: Readonly<Record<string, string>> = {
  BUSY: "The SQLite file is in use by another process. End what holds it, or raise busyMs.",
  LOCKED: "The SQLite table is locked by another statement of this process. Give the store a handle of its own.",
  READONLY:
    "The SQLite file is read-only. Open it for writing, and allow this user to write to the file and to its folder.",
  NOTADB: "The file is no SQLite database, or it is encrypted. Name another path.",
  CORRUPT: "The SQLite file is damaged. Remove it, or put a copy in its place.",
  FULL: "There is no room left on the disk for the SQLite file. Make room.",
  IOERR: "The SQLite file could not be read or written. Look at the disk.",
  CANTOPEN: "The SQLite file cannot be opened. Check that its folder exists and may be read and written.",
  NOMEM: "There is no memory left for SQLite. Give the process more.",
  PERM: "This user may not use the SQLite file. Allow it to read and write the file and its folder.",
  AUTH: "The SQLite handle does not allow what the store does. Pass one without an authorizer.",
};

/** Failures that somebody has to mend. The others may pass. */
const LASTING: readonly string[] = ["READONLY", "NOTADB", "CORRUPT", "CANTOPEN", "PERM", "AUTH"];

const names: Readonly<Record<number, string>> = {
  3: "PERM",
  5: "BUSY",
  6: "LOCKED",
  7: "NOMEM",
  8: "READONLY",
  10: "IOERR",
  11: "CORRUPT",
  13: "FULL",
  14: "CANTOPEN",
  23: "AUTH",
  26: "NOTADB",
};

/** Tells whether a failure passes when others let go of the file. */
export function isBusy(error: unknown): boolean {
  return nameOf(error) === "BUSY" || nameOf(error) === "LOCKED";
}

/** Makes a `StoreError` of what a client threw, with what happened and what to do. One that is a `StoreError` already stays as it is. */
export function sqliteError(error: unknown, table: string): StoreError {
  if (error instanceof StoreError) return error;
  const name = nameOf(error) ?? "";
  const message = messageOf(error);
  const isLasting = sentences[name] === undefined ? isMistake(message) : LASTING.includes(name);
  return new StoreError(sentences[name] ?? sentenceFor(message, table), { cause: error, isLasting });
}

/** For failures that SQLite or the client tells apart by the message alone. */
function sentenceFor(message: string, table: string): string {
  if (/not open|closed|finalized/i.test(message)) {
    return "The SQLite handle is closed. Keep it open as long as a limiter uses it.";
  }
  if (/within a transaction/i.test(message)) {
    return "The SQLite handle is in the middle of a transaction of yours. Give the store a handle of its own.";
  }
  if (/no such (table|column)|has no column|ON CONFLICT|view/i.test(message)) {
    return `The tables ${table} and ${table}_clock are not as politely makes them (${message}). Remove them, or name another table.`;
  }
  return `SQLite failed: ${message}`;
}

/** Whether the program has to be changed: what `sentenceFor` finds by the message. */
function isMistake(message: string): boolean {
  return /not open|closed|finalized|within a transaction|no such (table|column)|has no column|ON CONFLICT|view/i.test(
    message,
  );
}

/** `"BUSY"` for all of SQLITE_BUSY and its variants. Clients say it with a name or a number, each under a key of its own. */
function nameOf(error: unknown): string | undefined {
  if (typeof error !== "object" || error === null) return undefined;
  const { code, errcode, rawCode, errno } = error as Readonly<Record<string, unknown>>;
  const name = typeof code === "string" ? /^SQLITE_([A-Z]+)/.exec(code)?.[1] : undefined;
  const number = [errcode, rawCode, errno].find((value) => typeof value === "number");
  // The low byte is the kind; the rest tells variants apart.
  return name ?? (number === undefined ? undefined : names[number & 0xff]);
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
