import { StoreError } from "../../errors.js";

const CLOSED = "The client of PostgreSQL is closed. Keep it open as long as a limiter uses it.";
const CUT = "The connection to PostgreSQL was cut. Try again.";
const POOLER = "With a connection pooler that does not know prepared statements, pass prepare: false.";

/**
 * What to say: the first sentence whose pattern fits. They are matched with a code and a message: a SQLSTATE, a code of Node's sockets or one that `postgres` makes
 * up, or none, since `pg` tells some failures apart by the message alone.
 */
const SENTENCES: readonly (readonly [RegExp, string])[] = [
  [/^CONNECTION_(DESTROYED|ENDED)|after calling end|client was closed/i, CLOSED],
  [
    /is not queryable/,
    "The Client of PostgreSQL has lost its connection. Replace it, or pass a Pool, which connects anew.",
  ],
  [/^28P01/, "PostgreSQL does not accept the password. Check user and password of the client."],
  [/^28/, "PostgreSQL does not let this user in. Check user, password and the server's pg_hba.conf."],
  [/^3D000/, "The database does not exist. Create it, or correct its name in the client's settings."],
  [/^42501/, "This user lacks a privilege. Grant it SELECT, INSERT, UPDATE and DELETE on the table."],
  [/^25006/, "PostgreSQL is read-only here. Connect to the primary, as a user who may write."],
  [/^57014/, "PostgreSQL cancelled a statement that took too long. Raise this user's statement_timeout."],
  [/^55P03/, "Somebody else holds a lock on the table for too long. End the transaction that holds it."],
  [/^53100/, "The disk of the PostgreSQL server is full. Make room."],
  [/^53200/, "The PostgreSQL server is out of memory. Give it more."],
  [/^53300/, "PostgreSQL has no connection left. Lower the size of the pools, or raise its max_connections."],
  [/^(57P0|08)/, "The PostgreSQL server is not in service. Check that it runs, and try again."],
  [/^(22021|22P05)/, "The database cannot keep a character of a key. Use a database with the encoding UTF8."],
  [/^(26000|42P05)/, POOLER],
  [/^ECONNREFUSED/, "Nobody listens at PostgreSQL's address. Check that it runs, and the client's host and port."],
  [/^ENOTFOUND/, "The name of the PostgreSQL server is not known. Check the host of the client."],
  [
    /^(ETIMEDOUT|EHOSTUNREACH|CONNECT_TIMEOUT)/,
    "PostgreSQL cannot be reached. Check the network, and the client's host.",
  ],
  [/^(ECONNRESET|EPIPE|CONNECTION_CLOSED)|terminated|connection error/i, CUT],
  [/timeout/i, "PostgreSQL did not answer in time. Check the network and how busy the server is."],
  [/password must be a string/i, "The client of PostgreSQL has no password. Give it one."],
];
/** What somebody has to mend: who may enter, what the table is like, a client that was closed. The others may pass. */
const LASTING =
  /^(28|42|3[DF]0|220|22P|CONNECTION_ENDED|CONNECTION_DESTROYED)|after calling end|client was closed|password must be|is not queryable/i;

/** Tells whether a statement failed because of others that ran at the same time, so that it may do better the next time. */
export function isConflict(error: unknown): boolean {
  return /^(40001|40P01|23505) /.test(saidBy(error));
}

/**
 * Makes a `StoreError` of what a client threw, with what happened and what to do. One that is a `StoreError` already stays as it is.
 *
 * `table` is the name as the user wrote it, `creating` the SQL that creates it.
 */
export function postgresError(error: unknown, table: string, creating: string): StoreError {
  if (error instanceof StoreError) return error;
  const said = saidBy(error);
  return new StoreError(sentenceFor(said, table, creating), { cause: error, isLasting: LASTING.test(said) });
}

function sentenceFor(said: string, table: string, creating: string): string {
  if (/^(42P01|3F000) /.test(said)) {
    const schema = said.startsWith("3F000") ? "the schema first, then " : "";
    return `PostgreSQL has no table ${table}. Create ${schema}it once with await store.createTable(), or run:\n${creating}`;
  }
  if (/^(42703|42804|42P10|42809) /.test(said))
    return `The table ${table} is not as politely makes it (${said}). Name another table, or remove this one and call createTable().`;
  const sentence = SENTENCES.find(([pattern]) => pattern.test(said))?.[1];
  return sentence === undefined ? `PostgreSQL failed: ${said.trim()}` : `${sentence} (${said.trim()})`;
}

/** Code and message, the code empty where there is none. Several attempts to connect that all failed come as one error. */
function saidBy(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) return saidBy(error.errors[0]);
  const { code, message } = (error ?? {}) as { readonly code?: unknown; readonly message?: unknown };
  return `${typeof code === "string" ? code : ""} ${typeof message === "string" ? message : String(error)}`;
}
