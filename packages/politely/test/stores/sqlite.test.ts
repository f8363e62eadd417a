import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type SqliteHandle, sqliteCells, sqliteStore } from "../../src/stores/sqlite.js";
import { storeSuite } from "../../src/testing/storeSuite.js";
import { cellsSuite, spoilIn } from "./cellsSuite.js";
import { type CompiledStore, compileStore, runChild } from "./sqlite/childPrograms.js";
import { temporaryFile } from "./sqlite/temporaryFile.js";

cellsSuite("SQLite with libsql", async () => {
  const file = temporaryFile();
  return {
    cells: sqliteCells(file.open()),
    another: async () => sqliteCells(file.open()),
    close: async () => file[Symbol.dispose](),
  };
});

describe("SQLite as a store", () => {
  const open = async () => {
    const file = temporaryFile();
    return {
      store: sqliteStore(file.open()),
      another: async () => sqliteStore(file.open()),
      spoil: spoilIn(sqliteCells(file.open())),
      close: async () => file[Symbol.dispose](),
    };
  };
  it.each(storeSuite("SQLite", open).map(({ title, run }) => [title, run] as const))("%s", (_title, run) => run());
});

interface BuiltIn {
  readonly DatabaseSync: new (path: string) => SqliteHandle & { close(): void };
}
const builtIn = process.getBuiltinModule("node:sqlite") as BuiltIn | undefined;
if (builtIn !== undefined) {
  // From Node 22 on.
  cellsSuite("SQLite with a path", async () => {
    const file = temporaryFile();
    const clients = [sqliteCells(file.path), sqliteCells(file.path)];
    return {
      cells: clients[0],
      another: async () => clients[1],
      close: async () => {
        for (const client of clients) client.close();
        file[Symbol.dispose]();
      },
    };
  });
}

describe("processes that share a SQLite file", () => {
  let compiled: CompiledStore;
  beforeAll(() => {
    compiled = compileStore();
  });
  afterAll(() => compiled.remove());

  it("lose no change of 4 times 1,000, and none of them waits for 3 s", async () => {
    using file = temporaryFile();
    const startsAtMs = String(Date.now() + 1_000);
    const ends = await Promise.all(
      [1, 2, 3, 4].map(() => runChild("count.mjs", [compiled.url, file.path, "1000", startsAtMs])),
    );
    expect(ends.map(({ code, stderr }) => [code, stderr])).toEqual(ends.map(() => [0, ""]));
    console.info(`longest waits: ${ends.map(({ stdout }) => stdout.trim()).join(" ")}`);
    expect(await read(sqliteCells(file.open()), ["counter"])).toEqual(["4000"]);
  });

  it.each(builtIn === undefined ? ["handle"] : ["handle", "path"])(
    "may open a new file at the same moment, as documented, by a %s",
    async (how) => {
      for (let round = 0; round < 3; round++) {
        using file = temporaryFile();
        const args = [compiled.url, file.path, how, String(Date.now() + 1_000)];
        const ends = await Promise.all(Array.from({ length: 8 }, () => runChild("opened.mjs", args)));
        expect(ends.filter(({ code }) => code !== 0).map(({ stderr }) => stderr)).toEqual([]);
        expect(await read(sqliteCells(file.open()), ["counter"])).toEqual(["8"]);
      }
    },
  );

  it.each([0, 1, 7])("lose nothing when one is killed inside a transaction, after %i others", async (commits) => {
    using file = temporaryFile();
    const { signal, stderr } = await runChild("killed.mjs", [compiled.url, file.path, String(commits)]);
    expect([signal, stderr]).toEqual(["SIGKILL", ""]);
    const expected = commits === 0 ? [undefined, undefined] : [String(100 - commits), String(commits)];
    const cells = sqliteCells(file.open());
    expect(await read(cells, ["from", "to"])).toEqual(expected);
    // The lock has gone with the process.
    await cells.change(["from"], () => ({ writes: [{ index: 0, value: "1", ttlUs: 1e9 }], answer: undefined }));
    expect(await read(cells, ["from"])).toEqual(["1"]);
  });

  it("agree on the time, and on what has expired, though their wall clocks are 60 s fast and slow", async () => {
    using file = temporaryFile();
    const looks: { old?: string; nowUs: number; wallMs: number }[] = [];
    for (const shiftSec of [60, -60, 0, -60, 60]) {
      // Monotonic time stays true, as it does on a machine whose date is wrong.
      const { stdout, stderr } = await runChild("look.mjs", [compiled.url, file.path], {
        before: ["faketime", "-f", `${shiftSec < 0 ? "" : "+"}${shiftSec}s`],
        env: { FAKETIME_DONT_FAKE_MONOTONIC: "1" },
      });
      expect(stderr).toBe("");
      const look = JSON.parse(stdout) as (typeof looks)[number];
      expect(Math.abs(look.wallMs - Date.now() - shiftSec * 1_000)).toBeLessThan(20_000);
      looks.push(look);
    }
    expect(looks.map(({ old }) => old)).toEqual([undefined, "x", "xx", "xxx", "xxxx"]);
    const stepsMs = looks.slice(1).map(({ nowUs }, index) => (nowUs - looks[index].nowUs) / 1_000);
    for (const stepMs of stepsMs) {
      expect(stepMs).toBeGreaterThan(0);
      expect(stepMs).toBeLessThan(25_000);
    }
  });
});

it("is a store on the machine's timeline: two handles agree on who holds a lease", async () => {
  using file = temporaryFile();
  const stores = [sqliteStore(file.open()), sqliteStore(file.open())];
  expect(stores.map(({ name, timeline }) => [name, timeline])).toEqual(stores.map(() => ["SQLite", "machine"]));
  const lease = { kind: "lease", act: "take", ttlUs: 60_000_000, epochUs: 1_800_000_000_000_000 } as const;
  const replies = await Promise.all(
    stores.map((store, index) => store.transact(["run"], { ...lease, holder: `h${index}`, label: `worker ${index}` })),
  );
  expect(replies.map(({ isHeld, label }) => [isHeld, label])).toEqual([
    [true, "worker 0"],
    [false, "worker 0"],
  ]);
});

function read(cells: ReturnType<typeof sqliteCells>, keys: readonly string[]): Promise<(string | undefined)[]> {
  return cells.change(keys, (values) => ({ writes: [], answer: [...values] }));
}
