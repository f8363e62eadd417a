import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { Client, Pool } from "pg";
import postgres from "postgres";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { StoreError } from "../../../src/errors.js";
import type { Cells } from "../../../src/stores/cells.js";
import { postgresCells, postgresStore } from "../../../src/stores/postgres.js";
import { Asker, keyOf } from "../../../src/testing/store/world.js";
import { type PostgresServer, startPostgres } from "../../servers/postgres.js";
import { add, newName, openPlace, type Place, read } from "./place.js";

let server: PostgresServer;
beforeAll(async () => {
  server = await startPostgres();
}, 60_000);
afterAll(() => server.stop());

/** The `StoreError` that `work` rejects with. */
async function problemOf(work: Promise<unknown>): Promise<StoreError> {
  const problem = await work.then(
    () => undefined,
    (error: unknown) => error,
  );
  expect(problem).toBeInstanceOf(StoreError);
  return problem as StoreError;
}

/** Expects that a change of "key" fails with `message` and the client's own error, and leaves everything as it was. */
async function expectProblem(place: Place, cells: Cells, message: RegExp): Promise<void> {
  const before = await read(place.cells(place.admin), "key");
  const problem = await problemOf(add(cells, "key"));
  expect(problem.message).toMatch(message);
  expect(problem.cause).toBeInstanceOf(Error);
  expect(await read(place.cells(place.admin), "key")).toEqual(before);
}

describe("a PostgreSQL that lets nobody in", () => {
  function withPassword(password: string): string {
    const url = new URL(server.url);
    url.password = password;
    return url.href;
  }

  it("is told by a wrong password, with pg", async () => {
    await using place = await openPlace(server);
    await expectProblem(place, place.cells(place.pool({ connectionString: withPassword("wrong") })), /password/i);
  });

  it("is told by a wrong password, with postgres", async () => {
    await using place = await openPlace(server);
    const client = postgres(withPassword("wrong"));
    await expectProblem(place, postgresCells(client, { table: place.table }), /password/i);
    await client.end();
  });

  it("is told by a database that does not exist", async () => {
    await using place = await openPlace(server);
    const url = new URL(server.url);
    url.pathname = `/${newName()}`;
    await expectProblem(place, place.cells(place.pool({ connectionString: url.href })), /database does not exist/);
  });

  it("is told by an address where nobody listens", async () => {
    await using place = await openPlace(server);
    const cells = place.cells(place.pool({ connectionString: "postgres://a:b@127.0.0.1:9/c" }));
    await expectProblem(place, cells, /Nobody listens/);
    const client = postgres("postgres://a:b@127.0.0.1:9/c");
    await expectProblem(place, postgresCells(client, { table: place.table }), /Nobody listens/);
    await client.end();
  });

  it("is told by one that accepts connections and says nothing, in time", async () => {
    const sockets: Socket[] = [];
    const silent = createServer((socket) => sockets.push(socket)).listen(0, "127.0.0.1");
    await once(silent, "listening");
    const url = `postgres://a:b@127.0.0.1:${(silent.address() as AddressInfo).port}/c`;
    const pool = new Pool({ connectionString: url });
    const client = postgres(url);
    const problems = await Promise.all(
      [pool, client].map((each) => problemOf(add(postgresCells(each, { timeoutMs: 200 }), "key"))),
    );
    for (const { message } of problems) expect(message).toMatch(/change of "key" within 200 ms/);
    for (const socket of sockets) socket.destroy();
    silent.close();
    await client.end({ timeout: 0 });
  });

  it("is told by too many connections", async () => {
    await using place = await openPlace(server);
    await using role = await openRole(place, "CONNECTION LIMIT 0");
    await expectProblem(place, place.cells(place.pool(role)), /no connection left/);
  });
});

describe("a table that cannot be used", () => {
  it("is named with the way to create it when it is missing", async () => {
    await using place = await openPlace(server);
    const table = newName();
    const cells = place.cells(place.pool(), { table });
    const { message, cause } = await problemOf(add(cells, "key"));
    expect(message).toContain(`has no table ${table}`);
    expect(message).toContain("await store.createTable()");
    expect(message).toContain(`CREATE TABLE IF NOT EXISTS "${table}"`);
    expect(cause).toBeInstanceOf(Error);
    await cells.createTable();
    await add(cells, "key");
    expect(await read(cells, "key")).toEqual(["1"]);
    await place.admin.query(`DROP TABLE "${table}"`);
  });

  it("is named when its schema is missing", async () => {
    await using place = await openPlace(server);
    const cells = place.cells(place.pool(), { table: `${newName()}.limits` });
    expect((await problemOf(cells.createTable())).message).toMatch(/Create the schema first/);
  });

  it("is named when it is somebody else's", async () => {
    await using place = await openPlace(server);
    const table = newName();
    await place.admin.query(`CREATE TABLE "${table}" (key text PRIMARY KEY, price numeric)`);
    const { message } = await problemOf(add(place.cells(place.pool(), { table }), "key"));
    expect(message).toContain(`The table ${table} is not as politely makes it`);
    await place.admin.query(`DROP TABLE "${table}"`);
  });

  it("says which privileges are missing", async () => {
    await using place = await openPlace(server);
    await using role = await openRole(place);
    await expectProblem(place, place.cells(place.pool(role)), /Grant it SELECT, INSERT, UPDATE and DELETE/);
  });

  it("may be read where it may not be written", async () => {
    await using place = await openPlace(server);
    await add(place.cells(place.admin), "key");
    const cells = place.cells(place.pool({ options: "-c default_transaction_read_only=on" }));
    await expectProblem(place, cells, /read-only/);
    expect(await read(cells, "key")).toEqual(["1"]);
  });

  it.each([
    ["53100", /disk .* is full/],
    ["53200", /out of memory/],
    ["57014", /statement_timeout/],
    ["XX001", /PostgreSQL failed: XX001 no/],
  ])("says what the server says with %s, and keeps the old value", async (code, message) => {
    await using place = await openPlace(server);
    await add(place.cells(place.admin), "key");
    await place.admin.query(`
      CREATE FUNCTION "${place.table}_no"() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = '${code}'; END $$;
      CREATE TRIGGER no BEFORE UPDATE ON "${place.table}" FOR EACH ROW EXECUTE FUNCTION "${place.table}_no"()`);
    await expectProblem(place, place.cells(), message);
    await place.admin.query(`DROP FUNCTION "${place.table}_no" CASCADE`);
  });

  it("says that a statement took too long when the table is locked", async () => {
    await using place = await openPlace(server);
    const holder = await place.admin.connect();
    await holder.query(`BEGIN; LOCK TABLE "${place.table}"`);
    const problem = await problemOf(add(place.cells(place.pool({ statement_timeout: 50 })), "key"));
    await holder.query("COMMIT");
    holder.release();
    expect(problem.message).toMatch(/statement_timeout/);
  });

  it("says which key has a value that politely did not write, and leaves others alone", async () => {
    await using place = await openPlace(server);
    const store = postgresStore(place.pool(), { table: place.table });
    const insert = `INSERT INTO "${place.table}" VALUES ($1, $2, 1, 9e15, 9e15)`;
    await place.admin.query(insert, ["foreign", "hello"]);
    await place.admin.query(insert, ["odd", "[1,\ue000]"]);
    const pause = (key: string): Promise<unknown> => new Asker(store, "a").record({ [key]: keyOf({}) }, { pauseUs: 1 });
    const results = await Promise.allSettled(["foreign", "odd", "fine"].map(pause));
    expect(results.map(({ status }) => status)).toEqual(["rejected", "rejected", "fulfilled"]);
    for (const [index, key] of ["foreign", "odd"].entries()) {
      const { reason } = results[index] as PromiseRejectedResult;
      expect(reason).toBeInstanceOf(StoreError);
      expect((reason as StoreError).message).toContain(`"${key}"`);
    }
    const { rows } = await place.admin.query(`SELECT value FROM "${place.table}" WHERE key = 'foreign'`);
    expect(rows).toEqual([{ value: "hello" }]);
  });
});

describe("a client that was closed", () => {
  it("is told, whichever it is", async () => {
    await using place = await openPlace(server);
    const pool = place.pool();
    await add(place.cells(pool), "key");
    await pool.end();
    await expectProblem(place, place.cells(pool), /client of PostgreSQL is closed/);

    const client = new Client({ connectionString: server.url });
    await client.connect();
    await client.end();
    await expectProblem(place, place.cells(client), /client of PostgreSQL is closed/);

    const other = postgres(server.url);
    await add(postgresCells(other, { table: place.table }), "key");
    await other.end();
    await expectProblem(place, postgresCells(other, { table: place.table }), /client of PostgreSQL is closed/);
  });
});

describe("a connection that the server has cut", () => {
  const cut = (pid: string): string => `SELECT pg_terminate_backend(${pid})`;

  it("is mended by a pool, and lasts with a single Client, which does not connect anew", async () => {
    await using place = await openPlace(server);
    const client = new Client({ connectionString: server.url });
    client.on("error", () => undefined);
    await client.connect();
    const cells = place.cells(client);
    const { rows } = await client.query<{ pid: number }>("SELECT pg_backend_pid() AS pid");
    await add(cells, "key");
    await place.admin.query(cut(String(rows[0].pid)));
    const ended = new Promise((resolve) => void client.once("end", resolve));
    const first = await problemOf(add(cells, "key"));
    await ended;
    const later = await problemOf(add(cells, "key"));
    for (const { message, isLasting, cause } of [later, first].slice(0, first.isLasting ? 2 : 1)) {
      expect(message).toMatch(/lost its connection.*Replace it, or pass a Pool, which connects anew/);
      expect(isLasting).toBe(true);
      expect(cause).toBeInstanceOf(Error);
    }

    const pool = place.pool({ max: 1 });
    const { rows: own } = await pool.query<{ pid: number }>("SELECT pg_backend_pid() AS pid");
    await place.admin.query(cut(String(own[0].pid)));
    const problem = await add(place.cells(pool), "key").catch((error: unknown) => error);
    if (problem instanceof StoreError) expect(problem.isLasting).toBe(false);
    await add(place.cells(pool), "key");
  });
});

/** A user of its own, and how a pool connects as that user. */
async function openRole(
  place: Place,
  settings = "",
): Promise<{ user: string; password: string; connectionString: string } & AsyncDisposable> {
  const user = newName();
  const url = new URL(server.url);
  url.username = user;
  url.password = "secret";
  await place.admin.query(`CREATE ROLE "${user}" LOGIN PASSWORD 'secret' ${settings}`);
  return {
    user,
    password: "secret",
    connectionString: url.href,
    async [Symbol.asyncDispose]() {
      await place.admin.query(`DROP ROLE "${user}"`);
    },
  };
}
