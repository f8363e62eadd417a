import { describe, expect, it } from "vitest";
import { type SqliteCells, type SqliteHandle, sqliteCells } from "../../../src/stores/sqlite.js";
import { type TemporaryFile, temporaryFile } from "./temporaryFile.js";

const second = 1_000_000;

function put(cells: SqliteCells, key: string, ttlUs: number): Promise<void> {
  return cells.change([key], () => ({ writes: [{ index: 0, value: "x", ttlUs }], answer: undefined }));
}

function count(file: TemporaryFile, where = "1"): number {
  const row = file.open().prepare(`SELECT count(*) AS n FROM politely WHERE ${where}`).get();
  return (row as { n: number }).n;
}

describe("cells in a SQLite file", () => {
  it("are removed some time after they expired, a few with each write", async () => {
    using file = temporaryFile();
    let nowUs = second;
    const cells = sqliteCells(file.open(), {}, { nowUs: () => nowUs, bootId: "one" });
    for (let index = 0; index < 300; index++) await put(cells, `short ${index}`, second);
    for (let index = 0; index < 20; index++) await put(cells, `long ${index}`, 1_000 * second);
    expect(count(file)).toBe(320);
    nowUs += 2 * second;
    // Each write pays for two cells, so that half as many writes as cells go round once.
    for (let index = 0; index < 200; index++) await put(cells, "long 0", 1_000 * second);
    expect(count(file)).toBe(20);
  });

  it("all carry an expiry, also when they are to be kept for ever", async () => {
    using file = temporaryFile();
    const cells = sqliteCells(file.open());
    await put(cells, "ever", Number.POSITIVE_INFINITY);
    await put(cells, "half", 0.5);
    expect(count(file, "typeof(expires_us) = 'integer' AND expires_us > written_us")).toBe(2);
  });

  it("share a transaction when they are changed in one turn, and each change fails for itself", async () => {
    using file = temporaryFile();
    const handle = file.open();
    const said: string[] = [];
    const listening: SqliteHandle = {
      prepare: (sql) => handle.prepare(sql),
      exec(sql) {
        said.push(sql);
        return handle.exec(sql);
      },
    };
    const cells = sqliteCells(listening);
    await put(cells, "a", second);
    said.length = 0;
    const add = (text: string): Promise<string> =>
      cells.change(["log"], ([old = ""]) => {
        if (text === "bad") throw new RangeError("bad");
        return { writes: [{ index: 0, value: old + text, ttlUs: second }], answer: old };
      });
    const results = await Promise.allSettled(["1", "bad", "2", "3"].map(add));
    expect(results.map((result) => (result.status === "fulfilled" ? result.value : "failed"))).toEqual([
      "",
      "failed",
      "1",
      "12",
    ]);
    expect(said).toEqual(["BEGIN IMMEDIATE", "COMMIT"]);
  });

  it("hold at most 64 changes in a transaction, and lose none of a thousand", async () => {
    using file = temporaryFile();
    const cells = sqliteCells(file.open());
    await Promise.all(
      Array.from({ length: 1_000 }, () =>
        cells.change(["n"], ([old = "0"]) => ({
          writes: [{ index: 0, value: String(Number(old) + 1), ttlUs: second * 60 }],
          answer: undefined,
        })),
      ),
    );
    expect(await cells.change(["n"], ([n]) => ({ writes: [], answer: n }))).toBe("1000");
  });

  it("work with a handle that reads numbers as bigints", async () => {
    using file = temporaryFile();
    const handle = file.open();
    handle.defaultSafeIntegers(true);
    const cells = sqliteCells(handle);
    await put(cells, "a", 60 * second);
    const seen = await cells.change(["a"], ([value], nowUs) => ({ writes: [], answer: [value, typeof nowUs] }));
    expect(seen).toEqual(["x", "number"]);
  });

  it("live in memory too, for one handle", async () => {
    using file = temporaryFile();
    const cells = sqliteCells(new (file.open().constructor as new (path: string) => SqliteHandle)(":memory:"));
    await put(cells, "a", 60 * second);
    expect(await cells.change(["a"], ([value]) => ({ writes: [], answer: value }))).toBe("x");
  });
});
