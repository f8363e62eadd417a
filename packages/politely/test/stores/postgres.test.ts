import { Client } from "pg";
import postgres from "postgres";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Cells } from "../../src/stores/cells.js";
import { postgresCells, postgresStore, postgresTableSql } from "../../src/stores/postgres.js";
import { storeSuite } from "../../src/testing/storeSuite.js";
import { type PostgresServer, startPostgres } from "../servers/postgres.js";
import { cellsSuite, spoilIn } from "./cellsSuite.js";
import { add, newName, openPlace, type Place, read } from "./postgres/place.js";

let server: PostgresServer;
beforeAll(async () => {
  server = await startPostgres();
}, 60_000);
afterAll(() => server.stop());

cellsSuite("PostgreSQL with a pool of pg", async () => {
  const place = await openPlace(server);
  return {
    cells: place.cells(),
    another: async () => place.cells(),
    close: async () => place[Symbol.asyncDispose](),
  };
});

describe("PostgreSQL as a store", () => {
  const open = async () => {
    const place = await openPlace(server);
    const another = async () => postgresStore(place.pool(), { table: place.table });
    const spoil = spoilIn(place.cells());
    return { store: await another(), another, spoil, close: async () => place[Symbol.asyncDispose]() };
  };
  it.each(storeSuite("PostgreSQL", open).map(({ title, run }) => [title, run] as const))("%s", (_title, run) => run());
});

cellsSuite("PostgreSQL with a client of pg", async () => {
  const place = await openPlace(server);
  const clients: Client[] = [];
  const open = async (): Promise<Cells> => {
    const client = new Client({ connectionString: server.url });
    clients.push(client);
    await client.connect();
    return place.cells(client);
  };
  return {
    cells: await open(),
    another: open,
    async close() {
      for (const client of clients) await client.end();
      await place[Symbol.asyncDispose]();
    },
  };
});

cellsSuite("PostgreSQL with postgres", async () => {
  const place = await openPlace(server);
  const clients = [postgres(server.url), postgres(server.url)];
  const [cells, other] = clients.map((client) => postgresCells(client, { table: place.table }));
  return {
    cells,
    another: async () => other,
    async close() {
      for (const client of clients) await client.end();
      await place[Symbol.asyncDispose]();
    },
  };
});

describe("clients that share a table of PostgreSQL", () => {
  const each = 30;

  /** Counts up one key, `each` times with each of the cells, all at once. */
  async function race(crowd: readonly Cells[]): Promise<void> {
    await Promise.all(
      crowd.map(async (cells) => {
        for (let done = 0; done < each; done++) await add(cells, "one");
      }),
    );
  }

  it("all get their turn when eight of them change one key, and lose nothing", async () => {
    await using place = await openPlace(server);
    const crowd = Array.from({ length: 8 }, () => place.cells(place.pool({ max: 2 })));
    await race(crowd);
    expect(await read(crowd[0], "one")).toEqual([String(8 * each)]);
  });

  it("lose nothing either when some are of pg and some of postgres, and all have one connection", async () => {
    await using place = await openPlace(server);
    const others = [1, 2].map(() => postgres(server.url, { max: 1 }));
    const crowd = [
      ...others.map((client) => postgresCells(client, { table: place.table })),
      ...[1, 2].map(() => place.cells(place.pool({ max: 1 }))),
    ];
    await race(crowd);
    expect(await read(crowd[3], "one")).toEqual([String(4 * each)]);
    for (const client of others) await client.end();
  });

  it("lose nothing when transactions are serializable by default", async () => {
    await using place = await openPlace(server);
    const options = "-c default_transaction_isolation=serializable";
    const crowd = Array.from({ length: 4 }, () => place.cells(place.pool({ max: 2, options })));
    await race(crowd);
    expect(await read(crowd[0], "one")).toEqual([String(4 * each)]);
  });
});

describe("the table of a PostgreSQL store", () => {
  it("is created once, though eight do it at the same time, and keeps what is in it", async () => {
    await using place = await openPlace(server);
    const table = newName();
    const crowd = Array.from({ length: 8 }, () => place.cells(place.pool({ max: 1 }), { table }));
    await Promise.all(crowd.map((cells) => cells.createTable()));
    await add(crowd[0], "kept");
    await crowd[1].createTable();
    expect(await read(crowd[2], "kept")).toEqual(["1"]);
    await place.admin.query(`DROP TABLE "${table}"`);
  });

  it("may be created with the SQL given as text, in a schema", async () => {
    await using place = await openPlace(server);
    const schema = newName();
    const table = `${schema}.Limits`;
    await place.admin.query(`CREATE SCHEMA "${schema}"; ${postgresTableSql(table)}`);
    const cells = place.cells(place.pool(), { table });
    await cells.createTable();
    await add(cells, "a");
    const { rows } = await place.admin.query(`SELECT key, value FROM "${schema}"."Limits"`);
    expect(rows).toEqual([{ key: "a", value: "1" }]);
    const indexes = await place.admin.query("SELECT 1 FROM pg_indexes WHERE schemaname = $1", [schema]);
    expect(indexes.rowCount).toBe(2);
    await place.admin.query(`DROP SCHEMA "${schema}" CASCADE`);
  });

  it.each(["", "a b", 'a"b', "a.b.c", "a;b", "1a", ".a", "a.", "ä", "a".repeat(51)])("is not called %j", (table) => {
    expect(() => postgresTableSql(table)).toThrow(TypeError);
  });

  it("gets rid of expired rows, all of them in the end, and of nothing else", async () => {
    await using place = await openPlace(server);
    const cells = place.cells();
    await add(cells, "young");
    const old = `INSERT INTO "${place.table}" SELECT 'old ' || n, 'x', 1, n, n FROM generate_series(1, $1::int) AS n`;
    await place.admin.query(old, [1_200]);
    await changesUntilSwept(place, cells);
    const { rows } = await place.admin.query(`SELECT key FROM "${place.table}"`);
    expect(rows).toEqual([{ key: "young" }]);
  });

  it("has an expiry in every row, also when it is to be kept for ever", async () => {
    await using place = await openPlace(server);
    const cells = place.cells();
    await cells.change(["ever", "half"], () => ({
      writes: [
        { index: 0, value: "", ttlUs: Number.POSITIVE_INFINITY },
        { index: 1, value: "", ttlUs: 0.5 },
      ],
      answer: undefined,
    }));
    const { rows } = await place.admin.query(
      `SELECT key, sweep_us > expires_us AS is_swept, sweep_us < 5e15 AS is_bounded FROM "${place.table}" ORDER BY key`,
    );
    expect(rows).toEqual(["ever", "half"].map((key) => ({ key, is_swept: true, is_bounded: true })));
  });

  async function changesUntilSwept(place: Place, cells: Cells): Promise<void> {
    for (let changes = 0; changes < 300; changes++) {
      await add(cells, "young");
      const { rows } = await place.admin.query(
        `SELECT count(*)::int AS old FROM "${place.table}" WHERE sweep_us < 1e9`,
      );
      if ((rows as { old: number }[])[0].old === 0) return;
    }
  }
});

describe("the time of a PostgreSQL store", () => {
  it("is that of the server, whatever zone and path the connection has set", async () => {
    await using place = await openPlace(server);
    const pool = place.pool({ options: "-c TimeZone=Asia/Tokyo -c search_path=pg_catalog" });
    const cells = place.cells(pool, { table: `public.${place.table}` });
    const serverUs = async (): Promise<number> => {
      const { rows } = await place.admin.query("SELECT extract(epoch FROM clock_timestamp()) * 1e6 AS us");
      return Number((rows as { us: string }[])[0].us);
    };
    const beforeUs = await serverUs();
    const nowUs = await cells.change(["a"], (_, now) => ({ writes: [], answer: now }));
    expect(nowUs).toBeGreaterThanOrEqual(Math.floor(beforeUs));
    expect(nowUs).toBeLessThanOrEqual(await serverUs());
  });
});
