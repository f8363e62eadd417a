import { Pool } from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { LeaseReply } from "../../../src/stores/operations.js";
import { postgresStore } from "../../../src/stores/postgres.js";
import type { Store } from "../../../src/stores/store.js";
import { Asker, keyOf } from "../../../src/testing/store/world.js";
import { type PostgresServer, startPostgres } from "../../servers/postgres.js";

/** Settings of its own make a server of its own, whose clock may be set. */
const settings = { fsync: "off" };
const clocks = ["clock_timestamp", "statement_timestamp"];

describe("a PostgreSQL server whose clock is set back", () => {
  let server: PostgresServer;
  let admin: Pool;
  const pools: Pool[] = [];
  let asked = 0;
  beforeAll(async () => {
    server = await startPostgres({ settings });
    admin = new Pool({ connectionString: server.url });
    admin.on("error", () => undefined);
    await admin.query(
      "CREATE SCHEMA past; CREATE TABLE past.behind (seconds float); INSERT INTO past.behind VALUES (0)",
    );
    // Found before those of the system by whoever has this schema first in its path.
    for (const name of clocks) {
      await admin.query(
        `CREATE FUNCTION past.${name}() RETURNS timestamptz LANGUAGE sql VOLATILE AS $$
           SELECT pg_catalog.${name}() - (SELECT seconds FROM past.behind) * interval '1 second' $$`,
      );
    }
    await postgresStore(admin, { table: "limits" }).createTable();
  }, 60_000);
  afterAll(async () => {
    await Promise.all([...pools, admin].map((pool) => pool.end()));
    await server.stop();
  });

  /** The store of one more process. */
  const open = (): Store => {
    const pool = new Pool({ connectionString: server.url, options: "-c search_path=past,pg_catalog,public" });
    // The server ends what is still connected.
    pool.on("error", () => undefined);
    pools.push(pool);
    return postgresStore(pool, { table: "public.limits" });
  };
  const setBack = (seconds: number): Promise<unknown> => admin.query("UPDATE past.behind SET seconds = $1", [seconds]);
  /** Asks for a start, of which there may be one in four seconds; gives how many there were, and how long the next is away. */
  const take = async (store: Store, key: string): Promise<readonly [number, number]> => {
    const asker = new Asker(store, `process ${asked++}`);
    const { starts, stop, nowUs } = await asker.take({ [key]: keyOf({ minDelay: "4s" }) });
    return [starts.length, ((stop?.atUs ?? nowUs) - nowUs) / 1e6];
  };

  it.each([0.5, 3, 5, 9, 60, 3_600])(
    "by %d s forgives nothing and lets nobody hang, though one process has seen the later time and another has not",
    async (seconds) => {
      await setBack(0);
      const [one, other] = [open(), open()];
      const key = `host ${seconds}`;
      expect((await take(one, key))[0]).toBe(1);
      await setBack(seconds);
      for (let round = 0; round < 3; round++) {
        for (const store of [one, other]) {
          const [starts, waitSeconds] = await take(store, key);
          expect(starts).toBe(0);
          expect(waitSeconds).toBeGreaterThan(2);
          expect(waitSeconds).toBeLessThanOrEqual(5);
        }
      }
    },
  );

  it.each([0.5, 3, 9, 60])("by %d s gives a lease to nobody else", async (seconds) => {
    await setBack(0);
    const [holder, old, late] = [open(), open(), open()];
    const key = `lease ${seconds}`;
    const ask = (store: Store, name: string): Promise<LeaseReply> =>
      store.transact([key], { kind: "lease", act: "take", holder: name, label: name, ttlUs: 2_000_000, epochUs: 1 });
    expect((await ask(holder, "holder")).isHeld).toBe(true);
    expect((await ask(old, "old")).isHeld).toBe(false);
    await setBack(seconds);
    expect((await ask(late, "late")).isHeld).toBe(false);
    expect((await ask(old, "old")).isHeld).toBe(false);
  });
});
