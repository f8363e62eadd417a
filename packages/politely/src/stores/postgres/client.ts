import { StoreError } from "../../errors.js";

/** A query as `pg` takes it. */
export interface PgQuery {
  readonly text: string;
  /** Given, the server keeps the statement's plan under this name. */
  readonly name?: string;
  readonly values?: string[];
  readonly rowMode: "array";
  /** In milliseconds. Keeps a connection that has died unnoticed from being waited for. */
  readonly query_timeout: number;
}

/** The part of a `Client` of `pg` that the store calls. It should be the store's own: what others send meanwhile would become part of its transactions. */
export interface PgClient {
  query(query: PgQuery): Promise<{ readonly rows: unknown[] }>;
}

/** The part of a client lent by a pool of `pg` that the store calls. */
export interface PgLentClient extends PgClient {
  on(event: "error", listener: () => void): unknown;
  removeListener(event: "error", listener: () => void): unknown;
  /** Gives it back; with true it is closed. */
  release(isBroken: boolean): void;
}

/** The part of a `Pool` of `pg` that the store calls. */
export interface PgPool extends PgClient {
  readonly totalCount: number;
  connect(): Promise<PgLentClient>;
}

/** The part of a query of `postgres` that the store calls. */
export interface PostgresJsQuery {
  values(): PromiseLike<readonly unknown[]>;
}

/** The part of a transaction of `postgres` that the store calls. */
export interface PostgresJsSession {
  unsafe(text: string, values?: string[], options?: { prepare?: boolean }): PostgresJsQuery;
}

/** The part of the function that `postgres()` returns that the store calls. */
export interface PostgresJs extends PostgresJsSession {
  begin<Result>(options: string, task: (session: PostgresJsSession) => Promise<Result>): Promise<unknown>;
}

/** A statement that is sent often, its parameters `$1`, `$2` and so on all texts. */
export interface Statement {
  /** Unique to the text. */
  readonly name: string;
  readonly text: string;
}

/** Rows by column. Columns are texts, or null. */
export type Rows = readonly (readonly (string | null)[])[];

/** One connection, or several where it does not matter which one a statement goes to. */
export interface Session {
  run(statement: Statement, values: string[]): Promise<Rows>;
}

/** What the store needs of a client, whichever it is. */
export interface Connection extends Session {
  /** How many things may be under way at once. */
  readonly laneCount: number;
  /** Sends statements without parameters, separated by `;`, which are carried out together or not at all. */
  script(text: string): Promise<void>;
  /**
   * Runs `task` in a transaction that sees what others commit meanwhile; `opening` is sent at its begin. Commits when `task` resolves,
   * rolls back when it rejects.
   */
  transaction<Result>(opening: string, task: (session: Session) => Promise<Result>): Promise<Result>;
}

/** How a client is used. */
export interface ConnectionOptions {
  /** Statements are prepared by name. */
  readonly isPrepared: boolean;
  /** How long a statement is waited for, where the client can be told. */
  readonly timeoutMs: number;
}

/** More would only compete for the two or three processors that a small server has. */
const poolLanes = 3;
/** A level of its own, since a client's default may be one where a row that changed while it was waited for is an error. */
const isolation = "ISOLATION LEVEL READ COMMITTED";

/** Makes a `Connection` of a client. Throws `TypeError` for anything that is none. */
export function connectionOf(client: PgPool | PgClient | PostgresJs, options: ConnectionOptions): Connection {
  if (isPostgresJs(client)) return postgresJsConnection(client, options);
  if (typeof (client as Partial<PgClient> | undefined)?.query !== "function") {
    throw new TypeError(
      `postgresStore needs a Pool or Client of pg, or what postgres() returns; got ${client === null ? "null" : typeof client}`,
    );
  }
  return isPool(client) ? pgPoolConnection(client, options) : pgClientConnection(client, options);
}

function isPostgresJs(client: PgPool | PgClient | PostgresJs): client is PostgresJs {
  return typeof client === "function" && typeof (client as Partial<PostgresJs>).unsafe === "function";
}

function isPool(client: PgPool | PgClient): client is PgPool {
  return "totalCount" in client && "connect" in client;
}

function pgSession(client: PgClient, { isPrepared, timeoutMs }: ConnectionOptions) {
  const send = async (text: string, rest: Pick<PgQuery, "name" | "values"> = {}): Promise<Rows> => {
    const { rows } = await client.query({ text, rowMode: "array", query_timeout: timeoutMs, ...rest });
    return rows as unknown as Rows;
  };
  return {
    run: ({ name, text }: Statement, values: string[]) => send(text, isPrepared ? { name, values } : { values }),
    async script(text: string): Promise<void> {
      await send(text);
    },
  };
}

function pgPoolConnection(pool: PgPool, options: ConnectionOptions): Connection {
  return {
    ...pgSession(pool, options),
    laneCount: poolLanes,
    async transaction(opening, task) {
      const client = await pool.connect();
      // While a client is lent, the pool does not hear its errors, and one that nobody hears ends the process. The statement under way rejects with it, too.
      const ignore = (): void => {};
      client.on("error", ignore);
      const session = pgSession(client, options);
      let isDone = false;
      try {
        await session.script(`BEGIN ${isolation}; ${opening}`);
        const result = await task(session);
        await session.script("COMMIT");
        isDone = true;
        return result;
      } finally {
        client.removeListener("error", ignore);
        // Closing rolls back, and works for connections that have died, too.
        client.release(!isDone);
      }
    },
  };
}

function pgClientConnection(client: PgClient, options: ConnectionOptions): Connection {
  const session = pgSession({ query: (query) => client.query(query).catch(rethrow) }, options);
  return {
    ...session,
    laneCount: 1,
    async transaction(opening, task) {
      await session.script(`BEGIN ${isolation}; ${opening}`);
      try {
        const result = await task(session);
        await session.script("COMMIT");
        return result;
      } catch (error) {
        // The first error says what happened; a second one would only say that the connection is gone.
        await session.script("ROLLBACK").catch(() => {});
        throw error;
      }
    },
  };
}

/** A single client that has lost its connection never gets another: what it says then does not pass. */
function rethrow(cause: unknown): never {
  if (!(cause instanceof Error && /connection error and is not queryable/.test(cause.message))) throw cause;
  throw new StoreError(
    "The Client of PostgreSQL has lost its connection. Replace it, or pass a Pool, which connects anew.",
    { cause, isLasting: true },
  );
}

function postgresJsConnection(sql: PostgresJs, { isPrepared }: ConnectionOptions): Connection {
  const sessionOf = (client: PostgresJsSession): Session => ({
    run: async ({ text }, values) => (await client.unsafe(text, values, { prepare: isPrepared }).values()) as Rows,
  });
  return {
    ...sessionOf(sql),
    laneCount: poolLanes,
    async script(text) {
      await sql.unsafe(text).values();
    },
    async transaction<Result>(opening: string, task: (session: Session) => Promise<Result>) {
      const result = await sql.begin(isolation, async (client) => {
        try {
          await client.unsafe(opening).values();
          return { result: await task(sessionOf(client)) };
        } catch (error) {
          // `begin` rejects by itself when the connection is gone. Told of the error, it would try to roll back first, and versions up to
          // 3.4.9 end the process when they send something on a closed connection (issue 1208 of porsager/postgres).
          if (isConnectionLost(error)) return new Promise<never>(() => {});
          throw error;
        }
      });
      return (result as { readonly result: Result }).result;
    },
  };
}

/** Tells errors that end the connection from those of a statement. */
function isConnectionLost(error: unknown): boolean {
  const { code, severity } = (error ?? {}) as { readonly code?: unknown; readonly severity?: unknown };
  if (severity === "FATAL" || severity === "PANIC") return true;
  return typeof code === "string" && !/^[0-9A-Z]{5}$/.test(code);
}
