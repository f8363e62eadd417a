import { writeFileSync } from "node:fs";
import { join } from "node:path";
import Database from "libsql";
import { afterEach, describe, expect, it, vi } from "vitest";
import { StoreError } from "../../../src/errors.js";
import { politely } from "../../../src/politely.js";
import { type SqliteCells, type SqliteHandle, sqliteCells, sqliteStore } from "../../../src/stores/sqlite.js";
import { VirtualClock } from "../../../src/testing/virtualClock.js";
import { temporaryFile } from "./temporaryFile.js";

afterEach(() => vi.restoreAllMocks());

const hour = 3_600_000_000;
const realLookup = process.getBuiltinModule.bind(process) as (id: string) => unknown;

function put(cells: SqliteCells, key: string, value: string): Promise<void> {
  return cells.change([key], () => ({ writes: [{ index: 0, value, ttlUs: hour }], answer: undefined }));
}

function read(cells: SqliteCells, key: string): Promise<string | undefined> {
  return cells.change([key], ([value]) => ({ writes: [], answer: value }));
}

/** What a change failed with. */
async function failure(changed: Promise<unknown>): Promise<StoreError> {
  const error: unknown = await changed.then(
    () => expect.fail("nothing failed"),
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(StoreError);
  return error as StoreError;
}

describe("a SQLite store says what is wrong and what to do", () => {
  it("when the file is read-only, and changes nothing", async () => {
    using file = temporaryFile();
    await put(sqliteCells(file.open()), "a", "before");
    const handle = new Database(`file:${file.path}?mode=ro`);
    const error = await failure(put(sqliteCells(handle), "a", "after"));
    handle.close();
    expect(error.message).toMatch(/read-only.*Open it for writing/);
    expect(error.cause).toMatchObject({ code: "SQLITE_READONLY" });
    expect(error.isLasting).toBe(true);
    expect(await read(sqliteCells(file.open()), "a")).toBe("before");
  });

  it("when the file is no database", async () => {
    using file = temporaryFile();
    const path = join(file.folder, "notes.txt");
    writeFileSync(path, "Buy milk, and a pound of limits. ".repeat(200));
    const handle = new Database(path);
    const error = await failure(put(sqliteCells(handle), "a", "1"));
    handle.close();
    expect(error.message).toMatch(/no SQLite database.*another path/);
    expect(error.cause).toMatchObject({ code: "SQLITE_NOTADB" });
  });

  it("when the disk is full, and goes on when there is room again", async () => {
    using file = temporaryFile();
    const handle = file.open();
    const cells = sqliteCells(handle);
    await put(cells, "a", "before");
    handle.exec("PRAGMA max_page_count = 8");
    const error = await failure(put(cells, "a", "after".repeat(20_000)));
    expect(error.message).toMatch(/no room left.*Make room/);
    expect(error.cause).toMatchObject({ code: "SQLITE_FULL" });
    expect(await read(cells, "a")).toBe("before");
    handle.exec("PRAGMA max_page_count = 8000");
    await put(cells, "a", "after");
    expect(await read(cells, "a")).toBe("after");
  });

  it("when the handle was closed, before the first use or later", async () => {
    using file = temporaryFile();
    for (const changes of [0, 3]) {
      const handle = new Database(file.path);
      const cells = sqliteCells(handle);
      for (let change = 0; change < changes; change++) await put(cells, "a", String(change));
      handle.close();
      const error = await failure(put(cells, "a", "late"));
      expect(error.message).toMatch(/handle is closed.*Keep it open/);
      expect(error.cause).toBeInstanceOf(Error);
    }
    expect(await read(sqliteCells(file.open()), "a")).toBe("2");
  });

  it("when the store itself was closed, and leaves the handle open", async () => {
    using file = temporaryFile();
    const handle = file.open();
    const cells = sqliteCells(handle);
    await put(cells, "a", "1");
    cells.close();
    cells.close();
    expect((await failure(put(cells, "a", "2"))).message).toContain("store is closed");
    expect(handle.prepare("SELECT value FROM politely").get()).toMatchObject({ value: "1" });
  });

  it("when another process holds the file for longer than busyMs", async () => {
    using file = temporaryFile();
    const cells = sqliteCells(file.open(), { busyMs: 30 });
    await put(cells, "a", "before");
    const holder = file.open();
    holder.exec("BEGIN IMMEDIATE");
    const errors = await Promise.all([failure(put(cells, "a", "1")), failure(put(cells, "b", "2"))]);
    for (const error of errors) {
      expect(error.message).toMatch(/in use by another process.*raise busyMs/);
      expect(error.cause).toMatchObject({ code: "SQLITE_BUSY" });
    }
    const late = put(sqliteCells(file.open()), "a", "late");
    holder.exec("COMMIT");
    await late;
    expect(await read(cells, "a")).toBe("late");
  });

  it("when the handle is inside a transaction of the caller, which it leaves alone", async () => {
    using file = temporaryFile();
    const handle = file.open();
    handle.exec("CREATE TABLE mine (n)");
    const cells = sqliteCells(handle);
    await put(cells, "a", "before");
    handle.exec("BEGIN");
    handle.exec("INSERT INTO mine VALUES (1)");
    expect((await failure(put(cells, "a", "after"))).message).toMatch(/transaction of yours.*handle of its own/);
    handle.exec("COMMIT");
    expect(handle.prepare("SELECT n FROM mine").get()).toMatchObject({ n: 1 });
    expect(await read(cells, "a")).toBe("before");
  });

  it("when a cell holds something foreign, and only to those who ask for that cell", async () => {
    using file = temporaryFile();
    const handle = file.open();
    const cells = sqliteCells(handle);
    await put(cells, "a", "1");
    handle.exec("INSERT INTO politely VALUES ('bad', x'00ff', 0, 9000000000000000)");
    handle.exec("INSERT INTO politely VALUES ('worse', 'text', 'yesterday', 'tomorrow')");
    const [bad, worse, good] = await Promise.all([
      failure(put(cells, "bad", "2")),
      failure(read(cells, "worse")),
      read(cells, "a"),
    ]);
    expect(bad.message).toMatch(/"bad" in the table politely was not written by politely.*another table/);
    expect(worse.message).toContain('"worse"');
    expect(good).toBe("1");
  });

  it.each([
    "CREATE TABLE politely (id INTEGER, name TEXT)",
    "CREATE TABLE politely (key, value, written_us, expires_us)",
    "CREATE VIEW politely AS SELECT 1 AS key, 2 AS value, 3 AS written_us, 4 AS expires_us",
  ])("when the table is somebody else's: %s", async (sql) => {
    using file = temporaryFile();
    const handle = file.open();
    handle.exec(sql);
    const error = await failure(put(sqliteCells(handle), "a", "1"));
    expect(error.message).toMatch(/not as politely makes them.*name another table/);
    expect(error.cause).toBeInstanceOf(Error);
    const ours = sqliteCells(handle, { table: "limits" });
    await put(ours, "a", "1");
    expect(await read(ours, "a")).toBe("1");
  });

  it("when the tables vanish, and makes them anew for the next change", async () => {
    using file = temporaryFile();
    const cells = sqliteCells(file.open());
    await put(cells, "a", "1");
    file.open().exec("DROP TABLE politely");
    expect((await failure(put(cells, "a", "2"))).message).toContain("no such table");
    await put(cells, "a", "3");
    expect(await read(cells, "a")).toBe("3");
  });

  it("when the handle answers with promises, or with rows as arrays", async () => {
    using file = temporaryFile();
    const handle = file.open();
    const late: SqliteHandle = {
      exec: () => Promise.reject(new Error("later")),
      prepare: () => expect.fail("nothing is prepared"),
    };
    const bare: SqliteHandle = { exec: (sql) => handle.exec(sql), prepare: (sql) => handle.prepare(sql).raw() };
    for (const wrong of [late, bare]) {
      const { message } = await failure(put(sqliteCells(wrong), "a", "1"));
      expect(message).toMatch(/with promises, or gives rows as arrays.*Pass one that answers at once/);
    }
  });

  it("when the platform cannot open a path by itself", () => {
    vi.spyOn(process, "getBuiltinModule").mockImplementation(without("node:sqlite"));
    expect(() => sqliteStore("limits.db")).toThrow(StoreError);
    expect(() => sqliteStore("limits.db")).toThrow(/no node:sqlite.*libsql/);
  });

  it("when a path cannot be opened, as soon as it is used, and opens it when it can", async () => {
    using file = temporaryFile();
    let isMissing = true;
    class Built extends Database {
      constructor(path: string) {
        if (isMissing) throw Object.assign(new Error("unable to open database file"), { errcode: 14 });
        super(path);
      }
    }
    vi.spyOn(process, "getBuiltinModule").mockImplementation(without("node:sqlite", { DatabaseSync: Built }));
    const cells = sqliteCells(file.path);
    const error = await failure(put(cells, "a", "1"));
    expect(error.message).toMatch(/cannot be opened.*folder exists/);
    // Nobody goes on with a part of the limits because a folder is missing.
    expect(error.isLasting).toBe(true);
    isMissing = false;
    await put(cells, "a", "1");
    expect(await read(cells, "a")).toBe("1");
    cells.close();
    expect((await failure(put(cells, "a", "2"))).message).toContain("store is closed");
  });
});

describe("a SQLite store refuses", () => {
  it.each(["", "1st", "a-b", "a b", "sqlite_x", "x".repeat(51), 'a"; DROP TABLE b; --'])(
    "a table named %j",
    (table) => {
      using file = temporaryFile();
      expect(() => sqliteCells(file.open(), { table })).toThrow(RangeError);
    },
  );

  it.each([-1, Number.NaN, Number.POSITIVE_INFINITY])("a busyMs of %d", (busyMs) => {
    using file = temporaryFile();
    expect(() => sqliteCells(file.open(), { busyMs })).toThrow(/busyMs must be 0 to/);
  });

  it.each([undefined, null, {}, { exec: () => 1 }])("%j in the place of a handle", (handle) => {
    expect(() => sqliteStore(handle as unknown as SqliteHandle)).toThrow(/takes a path, or a SQLite handle/);
  });
});

/** The platform's own lookup, with another answer for one module. */
function without(name: string, instead?: unknown): typeof process.getBuiltinModule {
  return ((id: string) => (id === name ? instead : realLookup(id))) as typeof process.getBuiltinModule;
}

it("a limiter on a file that stays locked says so, and nothing of servers and networks", async () => {
  using file = temporaryFile();
  await put(sqliteCells(file.open()), "a", "1");
  const other = file.open();
  other.exec("BEGIN IMMEDIATE");
  const clock = new VirtualClock();
  const store = sqliteStore(file.open());
  const polite = politely({ default: { rate: "1/s" } }, { store, clock, outage: "closed" });
  const refused = failure(polite.acquire("x.org"));
  // The store tries it in real time, and the limiter waits for it in virtual time.
  await new Promise((resolve) => setTimeout(resolve, 50));
  await clock.advance(8_000);
  const { message, cause, isLasting } = await refused;
  expect(message).toBe(
    "SQLite has not answered in 1500 ms. Look at what else on this machine uses it. Its client said: database is locked",
  );
  expect([cause, isLasting]).toEqual([expect.objectContaining({ code: "SQLITE_BUSY" }), false]);
  other.exec("ROLLBACK");
  await vi.waitUntil(() => store.lastError?.() === undefined);
});
