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

/** The part of a `Client` or a `Pool` of `pg` that the store calls. */
export interface PgClient {
  query(query: PgQuery): Promise<{ readonly rows: unknown[] }>;
}

/** The part of a query of `postgres` that the store calls. */
export interface PostgresJsQuery {
  values(): PromiseLike<readonly unknown[]>;
}

/** The part of the function that `postgres()` returns that the store calls. */
export interface PostgresJs {
  (...values: never[]): unknown;
  unsafe(text: string, values?: string[], options?: { prepare?: boolean }): PostgresJsQuery;
}

/** A statement that is sent often, its parameters `$1`, `$2` and so on all texts. */
export interface Statement {
  /** Unique to the text. */
  readonly name: string;
  readonly text: string;
}

/** Rows by column. Columns are texts, or null. */
export type Rows = readonly (readonly (string | null)[])[];

/** What the store needs of a client, whichever it is. */
export interface Connection {
  /** How many statements may be under way at once. */
  readonly laneCount: number;
  run(statement: Statement, values: string[]): Promise<Rows>;
  /** Calls `onMessage` with what is sent to a channel, on a connection of its own, until the returned function is called. Absent where no second connection can be had. */
  listen?(channel: string, onMessage: (message: string) => void): () => void;
  /** Sends statements without parameters, separated by `;`, which are carried out together or not at all. */
  script(text: string): Promise<unknown>;
}

/** More would only compete for the two or three processors that a small server has. */
const POOL_LANES = 3;

/** A connection that was lost while it listened is opened again after this. */
const RELISTEN_MS = 1_000;

/** Makes a `Connection` of a client. Throws `TypeError` for anything that is none. A statement is waited for until `timeoutMs`, where the client can be told. */
export function connectionOf(client: PgClient | PostgresJs, isPrepared: boolean, timeoutMs: number): Connection {
  if (typeof client === "function" && typeof (client as Partial<PostgresJs>).unsafe === "function") {
    return {
      laneCount: POOL_LANES,
      ...("listen" in client && { listen: (channel, onMessage) => listenWith(client as never, channel, onMessage) }),
      run: async ({ text }, values) => (await client.unsafe(text, values, { prepare: isPrepared }).values()) as Rows,
      script: async (text) => client.unsafe(text).values(),
    };
  }
  if (typeof (client as Partial<PgClient> | undefined)?.query !== "function") {
    const given = client === null ? "null" : typeof client;
    throw new TypeError(`postgresStore needs a Pool or Client of pg, or what postgres() returns; got ${given}`);
  }
  const pg = client as PgClient;
  const send = async (text: string, rest: Pick<PgQuery, "name" | "values"> = {}): Promise<Rows> =>
    (await pg.query({ text, rowMode: "array", query_timeout: timeoutMs, ...rest })).rows as unknown as Rows;
  return {
    laneCount: "totalCount" in pg ? POOL_LANES : 1,
    ...("Client" in pg && { listen: (channel, onMessage) => listenBeside(pg as never, channel, onMessage) }),
    run: ({ name, text }, values) => send(text, isPrepared ? { name, values } : { values }),
    script: (text) => send(text),
  };
}

/** What more is used of what `postgres()` returns. It connects anew by itself. */
interface ListeningJs {
  listen(channel: string, onMessage: (message: string) => void): Promise<{ unlisten(): Promise<unknown> }>;
}

function listenWith(client: ListeningJs, channel: string, onMessage: (message: string) => void): () => void {
  const listening = client.listen(channel, onMessage).catch(ignore);
  return () => void listening.then((it) => it?.unlisten()).catch(ignore);
}

/** What more is used of a `Pool` of `pg`: what it makes its connections of. */
interface PgPool {
  readonly Client: new (options: unknown) => PgListener;
  readonly options: unknown;
}

interface PgListener {
  connect(): Promise<unknown>;
  on(event: "error" | "end", listener: () => void): unknown;
  on(event: "notification", listener: (told: { readonly payload?: string }) => void): unknown;
  query(text: string): Promise<unknown>;
  end(): Promise<unknown>;
  unref?(): void;
}

/** Opens a connection beside those of a pool, so that the pool is none the fewer and may end when it likes. It does not keep the process. */
function listenBeside({ Client, options }: PgPool, channel: string, onMessage: (message: string) => void): () => void {
  let client: PgListener | undefined;
  let again: ReturnType<typeof setTimeout> | undefined;
  const open = (): void => {
    const own = new Client(options);
    client = own;
    const lost = (): void => {
      if (client !== own) return;
      client = undefined;
      void own.end().catch(ignore);
      again = setTimeout(open, RELISTEN_MS);
      (again as { unref?(): void }).unref?.();
    };
    own.on("error", lost);
    own.on("end", lost);
    own.on("notification", ({ payload = "" }) => onMessage(payload));
    const opened = own.connect().then(() => own.query(`LISTEN "${channel}"`));
    opened.then(() => own.unref?.(), lost);
  };
  open();
  return () => {
    clearTimeout(again);
    const own = client;
    client = undefined;
    void own?.end().catch(ignore);
  };
}

const ignore = (): undefined => undefined;
