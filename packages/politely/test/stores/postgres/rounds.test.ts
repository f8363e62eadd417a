import { setImmediate as nextTurn } from "node:timers/promises";
import type { PoolConfig } from "pg";
import postgres from "postgres";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { StoreError } from "../../../src/errors.js";
import { postgresCells } from "../../../src/stores/postgres.js";
import { until } from "../../fleet/until.js";
import { type PostgresServer, startPostgres } from "../../servers/postgres.js";
import { add, openPlace, read, watched } from "./place.js";

const minuteUs = 60_000_000;
let server: PostgresServer;
beforeAll(async () => {
  server = await startPostgres();
}, 60_000);
afterAll(() => server.stop());

describe("changes that are asked for at once", () => {
  it("share one statement where their rows are known, and two where they are not", async () => {
    await using place = await openPlace(server);
    let sent = 0;
    const cells = place.cells(
      watched(place.pool(), () => {
        sent += 1;
      }),
    );
    await add(cells, "first"); // The first write also removes expired rows.
    await until("the rows are removed", 5_000, () => sent === 3);

    const keys = Array.from({ length: 64 }, (_, index) => `key ${index}`);
    const addAll = (): Promise<unknown> => Promise.all(keys.map((key) => add(cells, key)));
    sent = 0;
    await addAll();
    expect(sent).toBe(2);
    await addAll();
    expect(sent).toBe(3);
    const values = await Promise.all(keys.map((key) => read(cells, key)));
    expect(values.flat()).toEqual(keys.map(() => "2"));
    expect(sent).toBe(4);
  });

  it("follow each other on the rows they share, and each fails for itself", async () => {
    await using place = await openPlace(server);
    const cells = place.cells();
    const say = (text: string, ...keys: string[]): Promise<string> =>
      cells.change(keys, (values) => {
        if (text === "bad") throw new RangeError("bad");
        const writes = values.map((old = "", index) => ({ index, value: old + text, ttlUs: minuteUs }));
        return { writes, answer: values.join("|") };
      });
    const results = await Promise.allSettled([
      say("1", "a"),
      say("2", "b"),
      say("bad", "a", "b"),
      say("3", "b", "a"),
      say("4", "c"),
      read(cells, "a"),
    ]);
    expect(results.map((result) => (result.status === "fulfilled" ? result.value : String(result.reason)))).toEqual([
      "",
      "",
      "RangeError: bad",
      "2|1",
      "",
      ["13"],
    ]);
    expect(await read(cells, "a", "b", "c")).toEqual(["13", "23", "4"]);
  });

  it("are tried again only where somebody else was faster", async () => {
    await using place = await openPlace(server);
    const rival = place.cells();
    await add(rival, "contested", "free");
    let isFirst = true;
    const cells = place.cells(
      watched(place.pool(), async ({ text }) => {
        if (!isFirst || !text.includes("UPDATE ")) return;
        isFirst = false;
        await add(rival, "contested");
      }),
    );
    const seen: string[] = [];
    const addSeen = (key: string): Promise<void> =>
      cells.change([key], ([old]) => {
        seen.push(`${key} ${old}`);
        return { writes: [{ index: 0, value: String(Number(old) + 1), ttlUs: minuteUs }], answer: undefined };
      });
    await Promise.all(["contested", "free"].map(addSeen));
    expect(seen).toEqual(["contested 1", "free 1", "contested 2"]);
    expect(await read(rival, "contested", "free")).toEqual(["3", "2"]);
  });

  it("see a row that another makes at the same moment", async () => {
    await using place = await openPlace(server);
    const rival = place.cells();
    let isFirst = true;
    const cells = place.cells(
      watched(place.pool(), async ({ text }) => {
        if (!isFirst || !text.includes("INSERT ")) return;
        isFirst = false;
        await add(rival, "new");
      }),
    );
    await add(cells, "new", "other");
    expect(await read(rival, "new", "other")).toEqual(["2", "1"]);
  });

  it("depend on the rows that they read and do not write, also on those that are missing", async () => {
    await using place = await openPlace(server);
    const rival = place.cells();
    let isFirst = true;
    const cells = place.cells(
      watched(place.pool(), async ({ text }) => {
        if (!isFirst || !text.includes("UPDATE ")) return;
        isFirst = false;
        await add(rival, "condition");
      }),
    );
    const answer = await cells.change(["target", "condition"], ([, condition = "none"]) => ({
      writes: [{ index: 0, value: condition, ttlUs: minuteUs }],
      answer: condition,
    }));
    expect(answer).toBe("1");
    expect(await read(rival, "target", "condition")).toEqual(["1", "1"]);
  });
});

describe("a change that takes too long", () => {
  it("holds up no others that come later when somebody else keeps rows locked, and says so", async () => {
    await using place = await openPlace(server);
    const cells = place.cells(place.pool(), { timeoutMs: 3_000 });
    await add(cells, "locked", "open");
    const holder = await place.admin.connect();
    await holder.query(`BEGIN; SELECT 1 FROM "${place.table}" WHERE key = 'locked' FOR UPDATE`);

    const blocked = add(cells, "locked").catch((error: unknown) => error);
    // Those that come at once share a statement with it.
    await nextTurn();
    await add(cells, "open");
    await add(cells, "open");
    const problem = await blocked;
    await holder.query("COMMIT");
    holder.release();
    expect(problem).toBeInstanceOf(StoreError);
    expect(String(problem)).toMatch(/holds a lock/);
    await add(cells, "locked");
    expect(await read(cells, "locked", "open")).toEqual(["2", "3"]);
  });
});

describe("clients with settings of their own", () => {
  const odd: Record<string, PoolConfig> = {
    "read numbers as something else": {
      types: { getTypeParser: (oid: number) => (text: string) => (oid === 25 ? text : Symbol(text)) },
    },
    "have another encoding": { client_encoding: "LATIN1" },
    "have one connection": { max: 1 },
  };
  it.each(Object.keys(odd))("work when they %s", async (name) => {
    await using place = await openPlace(server);
    const cells = place.cells(place.pool(odd[name]));
    await Promise.all([add(cells, "a"), add(cells, "a", "b"), add(cells, "c")]);
    expect(await read(cells, "a", "b", "c")).toEqual(["2", "1", "1"]);
  });

  it("work without prepared statements", async () => {
    await using place = await openPlace(server);
    const names = new Set<string | undefined>();
    const pool = watched(place.pool(), ({ name }) => void names.add(name));
    const cells = place.cells(pool, { prepare: false });
    await add(cells, "a");
    expect(names).toEqual(new Set([undefined]));
    await add(place.cells(pool), "a");
    expect(names.size).toBeGreaterThan(2);
    expect(await read(cells, "a")).toEqual(["2"]);
  });

  it("work when postgres renames columns, reads numbers as bigint and does not look up types", async () => {
    await using place = await openPlace(server);
    const client = postgres(server.url, {
      transform: postgres.pascal,
      types: { bigint: postgres.BigInt },
      fetch_types: false,
      prepare: false,
    });
    const cells = postgresCells(client, { table: place.table });
    await Promise.all([add(cells, "a"), add(cells, "a", "b")]);
    expect(await read(cells, "a", "b")).toEqual(["2", "1"]);
    await client.end();
  });

  it.each([99, 600_001, 0.5, Number.NaN])("do not wait for %d ms", (timeoutMs) => {
    expect(() => postgresCells({ query: async () => ({ rows: [] }) }, { timeoutMs })).toThrow(RangeError);
  });

  it.each([undefined, null, {}, () => {}, "postgres://"])("are clients, and not %j", (client) => {
    expect(() => postgresCells(client as never)).toThrow(TypeError);
  });
});
