import { Pool, type PoolConfig } from "pg";
import type { Cells } from "../../../src/stores/cells.js";
import type { PgClient, PgQuery } from "../../../src/stores/postgres/client.js";
import { type PostgresCells, type PostgresOptions, postgresCells } from "../../../src/stores/postgres.js";
import type { PostgresServer } from "../../servers/postgres.js";

const minuteUs = 60_000_000;
const run = Math.trunc(Math.random() * 2 ** 30).toString(36);
let tableCount = 0;

/** A table of its own on a server, and pools that end with it. */
export interface Place extends AsyncDisposable {
  readonly table: string;
  /** For statements of the test's own. */
  readonly admin: Pool;
  /** A new pool whose lost connections disturb nobody. */
  pool(config?: PoolConfig): Pool;
  /** Cells in the table, with a new pool unless one is given. */
  cells(client?: PgClient, options?: PostgresOptions): PostgresCells;
}

/** Creates a table that no other test and no other run has. */
export async function openPlace(server: PostgresServer): Promise<Place> {
  const table = newName();
  const pools: Pool[] = [];
  const pool = (config: PoolConfig = {}): Pool => {
    const made = new Pool({ connectionString: server.url, ...config });
    made.on("error", () => {});
    pools.push(made);
    return made;
  };
  const cells = (client: PgClient = pool(), options: PostgresOptions = {}): PostgresCells =>
    postgresCells(client, { table, ...options });
  const admin = pool();
  await cells(admin).createTable();
  return {
    table,
    admin,
    pool,
    cells,
    async [Symbol.asyncDispose]() {
      await admin.query(`DROP TABLE IF EXISTS "${table}"`);
      await Promise.all(pools.filter(({ ending }) => !ending).map((each) => each.end()));
    },
  };
}

/** A name for a table, a schema or a role that no other test and no other run has. */
export function newName(): string {
  tableCount += 1;
  return `politely_${run}_${tableCount}`;
}

/** The same pool, with `before` done before each query. What it throws is the query's error. */
export function watched(
  pool: Pool,
  before: (query: PgQuery) => Promise<void> | void,
): PgClient & { readonly totalCount: number } {
  return {
    totalCount: 0,
    async query(query) {
      await before(query);
      return pool.query(query);
    },
  };
}

/** Counts up the cells under `keys`, in one change. */
export function add(cells: Cells, ...keys: readonly string[]): Promise<void> {
  return cells.change(keys, (values) => ({
    writes: values.map((old, index) => ({ index, value: String(Number(old ?? 0) + 1), ttlUs: minuteUs })),
    answer: undefined,
  }));
}

/** The values under `keys`. */
export function read(cells: Cells, ...keys: readonly string[]): Promise<readonly (string | undefined)[]> {
  return cells.change(keys, (values) => ({ writes: [], answer: values }));
}
