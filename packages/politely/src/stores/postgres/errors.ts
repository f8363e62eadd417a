import { StoreError } from "../../errors.js";

/** What to say for SQLSTATE codes, for codes of Node's sockets, and for those that `postgres` makes up. A class of SQLSTATE is its first two characters. */
const sentences: Readonly<Record<string, string>> = {
  "28P01": "PostgreSQL does not accept the password. Check user and password of the client.",
  "28": "PostgreSQL does not let this user in. Check user and password of the client, and pg_hba.conf of the server.",
  "3D000": "The database does not exist. Create it, or correct its name in the client's settings.",
  "42501": "This user lacks a privilege. Grant it SELECT, INSERT, UPDATE and DELETE on the table.",
  "25006":
    "PostgreSQL is read-only here. Connect to the primary, as a user whose default_transaction_read_only is off.",
  "57014":
    "PostgreSQL cancelled a statement that took too long. Raise the statement_timeout of this user, or find out what slows the server down.",
  "55P03": "Somebody else holds a lock on the table for too long. End the transaction that holds it.",
  "53100": "The disk of the PostgreSQL server is full. Make room.",
  "53200": "The PostgreSQL server is out of memory. Give it more.",
  "53300": "PostgreSQL has no connection left. Lower the size of the pools, or raise its max_connections.",
  "53": "PostgreSQL lacks a resource. See its log.",
  "57P03": "PostgreSQL is starting up or shutting down. Try again.",
  "57P01": "PostgreSQL was shut down, or somebody ended the connection. Try again.",
  "57": "PostgreSQL ended the connection. Try again.",
  "08": "The connection to PostgreSQL failed. Check that the server runs, and try again.",
  "22021": "The database cannot keep a character of the state. Use a database with the encoding UTF8.",
  "22P05": "The database cannot keep a character of the state. Use a database with the encoding UTF8.",
  "26000": "A prepared statement is gone. With a connection pooler that does not know them, pass prepare: false.",
  "42P05":
    "A prepared statement exists already. With a connection pooler that does not know them, pass prepare: false.",
  ECONNREFUSED: "Nobody listens at PostgreSQL's address. Check that the server runs, and host and port of the client.",
  ECONNRESET: "The connection to PostgreSQL was cut. Try again.",
  EPIPE: "The connection to PostgreSQL was cut. Try again.",
  ETIMEDOUT: "PostgreSQL cannot be reached. Check the network, and host and port of the client.",
  EHOSTUNREACH: "PostgreSQL cannot be reached. Check the network, and host and port of the client.",
  ENOTFOUND: "The name of the PostgreSQL server is not known. Check the host of the client.",
  CONNECTION_CLOSED: "The connection to PostgreSQL was cut. Try again.",
  CONNECTION_DESTROYED: "The client of PostgreSQL is closed. Keep it open as long as a limiter uses it.",
  CONNECTION_ENDED: "The client of PostgreSQL is closed. Keep it open as long as a limiter uses it.",
  CONNECT_TIMEOUT: "PostgreSQL cannot be reached. Check the network, and host and port of the client.",
};

/** Failures that `pg` tells apart by the message alone. */
const messages: readonly (readonly [RegExp, string])[] = [
  [
    /after calling end|client was closed/i,
    "The client of PostgreSQL is closed. Keep it open as long as a limiter uses it.",
  ],
  [
    /terminated|connection error/i,
    "The connection to PostgreSQL was cut. Try again: a pool connects anew, while a single Client has to be replaced.",
  ],
  [/timeout/i, "PostgreSQL did not answer in time. Check the network and how busy the server is."],
  [/password must be a string/i, "The client of PostgreSQL has no password. Give it one."],
];

/** Tells whether the server gave up a statement because of others that ran at the same time, so that it may do better the next time. */
export function isConflict(error: unknown): boolean {
  const code = codeOf(error);
  return code === "40001" || code === "40P01";
}

/**
 * Makes a `StoreError` of what a client threw, with what happened and what to do. One that is a `StoreError` already stays as it is.
 *
 * `table` is the name as the user wrote it, `creating` the SQL that creates it.
 */
export function postgresError(error: unknown, table: string, creating: string): StoreError {
  if (error instanceof StoreError) return error;
  return new StoreError(sentenceFor(error, table, creating), { cause: error, isLasting: isLasting(error) });
}

/** Failures that somebody has to mend: who may enter, what the table is like, a client that was closed. The others may pass. */
function isLasting(error: unknown): boolean {
  const code = codeOf(error);
  const isMistake = /^(28|42|3[DF]0|220|22P)/.test(code) || ["CONNECTION_ENDED", "CONNECTION_DESTROYED"].includes(code);
  return isMistake || /after calling end|client was closed|password must be a string/i.test(messageOf(error));
}

function sentenceFor(error: unknown, table: string, creating: string): string {
  const code = codeOf(error);
  const message = messageOf(error);
  if (code === "42P01" || code === "3F000") {
    const schema = code === "3F000" ? "the schema first, then " : "";
    return `PostgreSQL has no table ${table}. Create ${schema}it once with await store.createTable(), or run:\n${creating}`;
  }
  if (code === "42703" || code === "42804" || code === "42P10" || code === "42809") {
    return `The table ${table} is not as politely makes it (${message}). Name another table, or remove this one and call createTable().`;
  }
  const known = sentences[code] ?? sentences[code.slice(0, 2)];
  if (known !== undefined) return `${known} (${message})`;
  const told = messages.find(([pattern]) => pattern.test(message));
  return told === undefined ? `PostgreSQL failed: ${message}` : `${told[1]} (${message})`;
}

/** Empty when there is none. Several attempts to connect that all failed come as one error without a code. */
function codeOf(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) return codeOf(error.errors[0]);
  const code = (error as { readonly code?: unknown } | undefined)?.code;
  return typeof code === "string" ? code : "";
}

function messageOf(error: unknown): string {
  if (error instanceof AggregateError && error.message === "" && error.errors.length > 0)
    return messageOf(error.errors[0]);
  return error instanceof Error ? error.message : String(error);
}
