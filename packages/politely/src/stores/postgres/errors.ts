import type { StoreError } from "../../errors.js";
import { type Failures, failureOf } from "../failures.js";

const NO_TABLE = "PostgreSQL has no table {table}. Create";
const TO_CREATE = "it once with await store.createTable(), or run:\n{creating}";

/**
 * By code and message: a SQLSTATE, a code of Node's sockets or one that `postgres` makes up, or none, since `pg` tells some failures apart by the message alone.
 */
const FAILURES: Failures = {
  "^42P01 ": `${NO_TABLE} ${TO_CREATE}`,
  "^3F000 ": `${NO_TABLE} the schema first, then ${TO_CREATE}`,
  "^(42703|42804|42P10|42809) ":
    "The table {table} is not as politely makes it ({said}). Name another table, or remove this one and call createTable().",
  "^CONNECTION_(DESTROYED|ENDED)|after calling end|client was closed":
    "The client of PostgreSQL is closed. Keep it open as long as a limiter uses it. ({said})",
  "is not queryable":
    "The Client of PostgreSQL has lost its connection. Replace it, or pass a Pool, which connects anew. ({said})",
  "^28P01": "PostgreSQL does not accept the password. Check user and password of the client. ({said})",
  "^28": "PostgreSQL does not let this user in. Check user, password and the server's pg_hba.conf. ({said})",
  "^3D000": "The database does not exist. Create it, or correct its name in the client's settings. ({said})",
  "^42501": "This user lacks a privilege. Grant it SELECT, INSERT, UPDATE and DELETE on the table. ({said})",
  "^25006": "PostgreSQL is read-only here. Connect to the primary, as a user who may write. ({said})",
  "^57014": "PostgreSQL cancelled a statement that took too long. Raise this user's statement_timeout. ({said})",
  "^55P03": "Somebody else holds a lock on the table for too long. End the transaction that holds it. ({said})",
  "^53100": "The disk of the PostgreSQL server is full. Make room. ({said})",
  "^53200": "The PostgreSQL server is out of memory. Give it more. ({said})",
  "^53300": "PostgreSQL has no connection left. Lower the size of the pools, or raise its max_connections. ({said})",
  "^(57P0|08)": "The PostgreSQL server is not in service. Check that it runs, and try again. ({said})",
  "^(22021|22P05)": "The database cannot keep a character of a key. Use a database with the encoding UTF8. ({said})",
  "^(26000|42P05)": "With a connection pooler that does not know prepared statements, pass prepare: false. ({said})",
  "^ECONNREFUSED":
    "Nobody listens at PostgreSQL's address. Check that it runs, and the client's host and port. ({said})",
  "^ENOTFOUND": "The name of the PostgreSQL server is not known. Check the host of the client. ({said})",
  "^(ETIMEDOUT|EHOSTUNREACH|CONNECT_TIMEOUT)":
    "PostgreSQL cannot be reached. Check the network, and the client's host. ({said})",
  "^(ECONNRESET|EPIPE|CONNECTION_CLOSED)|terminated|connection error":
    "The connection to PostgreSQL was cut. Try again. ({said})",
  timeout: "PostgreSQL did not answer in time. Check the network and how busy the server is. ({said})",
  "password must be a string": "The client of PostgreSQL has no password. Give it one. ({said})",
  "": "PostgreSQL failed: {said}",
};
/** The others may pass. */
const LASTING =
  /^(28|42|3[DF]0|220|22P|CONNECTION_ENDED|CONNECTION_DESTROYED)|after calling end|client was closed|password must be|is not queryable/i;

/** Tells whether a statement failed because of others that ran at the same time, so that it may do better the next time. */
export function isConflict(error: unknown): boolean {
  return /^(40001|40P01|23505) /.test(saidBy(error));
}

/** What a client threw as a `StoreError`. `table` is the name as the user wrote it, `creating` the SQL that creates it. */
export function postgresError(error: unknown, table: string, creating: string): StoreError {
  const said = saidBy(error).trim();
  return failureOf(error, FAILURES, { said, table, creating, isLasting: LASTING.test(said) });
}

/** Code and message, the code empty where there is none. Several attempts to connect that all failed come as one error. */
function saidBy(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) return saidBy(error.errors[0]);
  const { code, message } = (error ?? {}) as { readonly code?: unknown; readonly message?: unknown };
  return `${typeof code === "string" ? code : ""} ${typeof message === "string" ? message : String(error)}`;
}
