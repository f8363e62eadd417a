import type { Pool, PoolClient, QueryConfig, QueryResult, QueryResultRow } from "pg";
import { postgresTables } from "./postgresTables.js";
import { countsOf } from "./rowCounts.js";
import type {
  BeginOptions,
  FinishedUrl,
  KeyCounts,
  QueueCounts,
  QueuedUrl,
  QueueOptions,
  RenewOptions,
  UrlQueue,
} from "./urlQueue.js";

const SUMS = "sum(total) total, sum(waiting) waiting, sum(fetched) fetched, sum(refused) refused, sum(failed) failed";
/** What PostgreSQL says when two transactions waited for each other. One of them may simply try again. */
const DEADLOCK = "40P01";
const MAX_TRIES = 10;
/** States of what has ended, as in urlQueue.ts. */
const ENDED = { fetched: 2, failed: 3, refused: 4 } as const;
/** For what goes over the whole list; other questions have the time that the pool gives them. */
const LONG_MS = 600_000;
/** The first half of the lock under which a list is begun. */
const BEGIN_LOCK = 7_049_317;

/**
 * Keeps a list in tables of a PostgreSQL database, whose names begin with `politely_get_`. Time is the server's. The caller opens
 * and closes `pool`. Creates the tables where they are missing.
 */
export async function postgresQueue(pool: Pool, options: QueueOptions): Promise<UrlQueue> {
  await pool.query(postgresTables);
  return new PostgresQueue(pool, options);
}

/** Answers questions. */
interface Client {
  query<Row extends QueryResultRow>(text: string, values: unknown[]): Promise<QueryResult<Row>>;
}

/** The same client, which waits ten minutes for an answer. */
function unhurried(client: PoolClient): Client {
  return {
    query: <Row extends QueryResultRow>(text: string, values: unknown[]): Promise<QueryResult<Row>> =>
      client.query<Row>({ text, values, query_timeout: LONG_MS } as QueryConfig),
  };
}

class PostgresQueue implements UrlQueue {
  constructor(
    readonly pool: Pool,
    readonly options: QueueOptions,
  ) {}

  add(urls: readonly QueuedUrl[]): Promise<void> {
    return this.#change(async (client) => {
      await this.#closeRound(client);
      const { rows } = await client.query<QueuedUrl>(
        `INSERT INTO politely_get_urls (list, hash, url, key)
         SELECT $1, sha256(convert_to(url, 'UTF8')), url, key
         FROM unnest($2::text[], $3::text[]) WITH ORDINALITY AS given (url, key, place) ORDER BY place
         ON CONFLICT DO NOTHING RETURNING key`,
        [this.options.name, urls.map(({ url }) => url), urls.map(({ key }) => key)],
      );
      await this.#count(client, rows, { total: 1, waiting: 1 });
    });
  }

  begin({ again }: BeginOptions): Promise<boolean> {
    return this.#change(async (hasty) => {
      const client = unhurried(hasty);
      const list = [this.options.name];
      // Workers that begin at the same time do so one after the other.
      await client.query(`SELECT pg_advisory_xact_lock(${BEGIN_LOCK}, hashtext($1))`, list);
      await this.#closeRound(client);
      await this.#again(client, ["failed"]);
      const { total, fetched, refused } = await this.#sums(client);
      if (again === true) {
        const { rowCount } = await client.query(
          "INSERT INTO politely_get_rounds (list) VALUES ($1) ON CONFLICT DO NOTHING",
          list,
        );
        if (rowCount === 0) return false;
      } else if (again === false || fetched + refused < total) return false;
      if (fetched + refused === 0) return false;
      await this.#again(client, ["fetched", "refused"]);
      return true;
    });
  }

  /** Ends the round that somebody asked for, if nothing of it is left. */
  async #closeRound(client: Client): Promise<void> {
    await client.query(
      `DELETE FROM politely_get_rounds WHERE list = $1
       AND NOT EXISTS (SELECT 1 FROM politely_get_urls WHERE list = $1 AND state = 0)
       AND NOT EXISTS (SELECT 1 FROM politely_get_urls WHERE list = $1 AND state = 1)`,
      [this.options.name],
    );
  }

  async keys(after: string, count: number): Promise<readonly string[]> {
    const { rows } = await this.pool.query<{ key: string }>(
      'SELECT key FROM politely_get_keys WHERE list = $1 AND waiting > 0 AND key COLLATE "C" > $2 ORDER BY key COLLATE "C" LIMIT $3',
      [this.options.name, after, count],
    );
    return rows.map(({ key }) => key);
  }

  claim(key: string, count: number): Promise<readonly string[]> {
    return this.#change(async (client) => {
      const { rows } = await client.query<{ url: string; id: string }>(
        `UPDATE politely_get_urls SET state = 1, worker = $4 WHERE id IN (
           SELECT id FROM politely_get_urls WHERE list = $1 AND key = $2 AND state = 0 ORDER BY id LIMIT $3
           FOR UPDATE SKIP LOCKED) RETURNING id, url`,
        [this.options.name, key, count, this.options.worker],
      );
      if (rows.length === 0) return [];
      await this.#renew(client);
      await this.#count(client, [{ key }], { waiting: -rows.length });
      return rows.sort((a, b) => Number(a.id) - Number(b.id)).map(({ url }) => url);
    });
  }

  finish(urls: readonly FinishedUrl[]): Promise<void> {
    return this.#change(async (client) => {
      for (const outcome of ["fetched", "failed", "refused"] as const) {
        const some = urls.filter((each) => each.outcome === outcome);
        if (some.length === 0) continue;
        const { rows } = await client.query<{ key: string; was: number }>(
          `WITH open AS (
             SELECT id, state FROM politely_get_urls WHERE list = $1 AND state IN (0, 1)
             AND hash = ANY(ARRAY(SELECT sha256(convert_to(url, 'UTF8')) FROM unnest($2::text[]) AS given (url)))
             ORDER BY id FOR UPDATE)
           UPDATE politely_get_urls u SET state = $3, worker = NULL FROM open WHERE u.id = open.id
           RETURNING u.key, open.state AS was`,
          [this.options.name, some.map(({ url }) => url), ENDED[outcome]],
        );
        await this.#count(client, rows, { [outcome]: 1 });
        await this.#count(
          client,
          rows.filter(({ was }) => was === 0),
          { waiting: -1 },
        );
      }
    });
  }

  renew({ takesOver = true }: RenewOptions = {}): Promise<number> {
    return this.#change(async (client) => {
      await this.#renew(client);
      if (!takesOver) return 0;
      const { rows } = await client.query<{ worker: string }>(
        `DELETE FROM politely_get_workers WHERE (list, worker) IN (
           SELECT list, worker FROM politely_get_workers WHERE list = $1 AND lease_until < clock_timestamp()
           FOR UPDATE SKIP LOCKED) RETURNING worker`,
        [this.options.name],
      );
      return rows.length === 0
        ? 0
        : this.#leave(
            client,
            rows.map((row) => row.worker),
          );
    });
  }

  counts(): Promise<QueueCounts> {
    return this.#sums(this.pool);
  }

  async countsByKey(count: number): Promise<readonly KeyCounts[]> {
    const { rows } = await this.pool.query(
      "SELECT * FROM politely_get_keys WHERE list = $1 ORDER BY total - fetched - refused - failed DESC LIMIT $2",
      [this.options.name, count],
    );
    return rows.map((row) => countsOf(row));
  }

  close(): Promise<void> {
    return this.#change(async (client) => {
      const { name, worker } = this.options;
      await this.#leave(client, [worker]);
      await client.query("DELETE FROM politely_get_workers WHERE list = $1 AND worker = $2", [name, worker]);
    });
  }

  async #sums(client: Client): Promise<KeyCounts> {
    const { rows } = await client.query(`SELECT ${SUMS} FROM politely_get_keys WHERE list = $1`, [this.options.name]);
    return countsOf(rows[0]);
  }

  async #renew(client: PoolClient): Promise<void> {
    const { name, worker, leaseMs } = this.options;
    await client.query(
      `INSERT INTO politely_get_workers (list, worker, lease_until)
       VALUES ($1, $2, clock_timestamp() + $3 * interval '1 millisecond')
       ON CONFLICT (list, worker) DO UPDATE SET lease_until = excluded.lease_until`,
      [name, worker, leaseMs],
    );
  }

  async #leave(client: PoolClient, workers: readonly string[]): Promise<number> {
    const { rows } = await client.query<{ key: string }>(
      `UPDATE politely_get_urls SET state = 0, worker = NULL
       WHERE list = $1 AND worker = ANY($2::text[]) AND state = 1 RETURNING key`,
      [this.options.name, workers],
    );
    await this.#count(client, rows, { waiting: 1 });
    return rows.length;
  }

  async #again(client: Client, outcomes: readonly (keyof typeof ENDED)[]): Promise<void> {
    for (const outcome of outcomes) {
      // No join: without statistics of a new table, PostgreSQL would compare every row with every other.
      const { rows } = await client.query<{ key: string; count: string }>(
        `WITH moved AS (UPDATE politely_get_urls SET state = 0 WHERE list = $1 AND state = $2 RETURNING key)
         SELECT key, count(*) AS count FROM moved GROUP BY key ORDER BY key`,
        [this.options.name, ENDED[outcome]],
      );
      for (const { key, count } of rows) {
        await this.#count(client, [{ key }], { waiting: Number(count), [outcome]: -Number(count) });
      }
    }
  }

  /** Adds `change` to the counts of each row's key. Keys are taken in order, so that two workers do not wait for each other. */
  async #count(client: Client, rows: readonly { readonly key: string }[], change: Partial<QueueCounts>): Promise<void> {
    if (rows.length === 0) return;
    const times = new Map<string, number>();
    for (const { key } of rows) times.set(key, (times.get(key) ?? 0) + 1);
    const keys = [...times.keys()].sort();
    const by = (name: keyof QueueCounts): number[] => keys.map((key) => (change[name] ?? 0) * (times.get(key) ?? 0));
    await client.query(
      `INSERT INTO politely_get_keys AS k (list, key, total, waiting, fetched, refused, failed)
       SELECT $1, * FROM unnest($2::text[], $3::int[], $4::int[], $5::int[], $6::int[], $7::int[])
       ON CONFLICT (list, key) DO UPDATE SET total = k.total + excluded.total, waiting = k.waiting + excluded.waiting,
         fetched = k.fetched + excluded.fetched, refused = k.refused + excluded.refused, failed = k.failed + excluded.failed`,
      [this.options.name, keys, by("total"), by("waiting"), by("fetched"), by("refused"), by("failed")],
    );
  }

  async #change<Result>(work: (client: PoolClient) => Promise<Result>): Promise<Result> {
    for (let tries = 1; ; tries++) {
      const client = await this.pool.connect();
      try {
        await client.query("BEGIN");
        const result = await work(client);
        await client.query("COMMIT");
        client.release();
        return result;
      } catch (error) {
        await client.query("ROLLBACK").then(
          () => client.release(),
          () => client.release(true),
        );
        if ((error as { code?: unknown }).code !== DEADLOCK || tries === MAX_TRIES) throw error;
      }
    }
  }
}
