import { copyFileSync, renameSync, rmSync } from "node:fs";
import Database from "libsql";
import { afterEach, expect, it, vi } from "vitest";
import type { Cells } from "../../../src/stores/cells.js";
import { sqliteCells } from "../../../src/stores/sqlite.js";
import { type TemporaryFile, temporaryFile } from "./temporaryFile.js";

afterEach(() => vi.restoreAllMocks());

/** What may become of a file while it is open. */
const ends: Readonly<Record<string, (file: TemporaryFile) => void>> = {
  "deleted with its log": ({ path }) => {
    for (const end of ["", "-wal", "-shm"]) rmSync(path + end, { force: true });
  },
  "deleted without its log": ({ path }) => rmSync(path),
  "replaced by a copy": ({ path }) => {
    copyFileSync(path, `${path}.copy`);
    renameSync(`${path}.copy`, path);
  },
};

function count(cells: Cells): Promise<number> {
  return cells.change(["a"], ([old]) => {
    const next = Number(old ?? 0) + 1;
    return { writes: [{ index: 0, value: String(next), ttlUs: 3_600_000_000 }], answer: next };
  });
}

it.each(Object.entries(ends))(
  "a handle whose file was %s is refused, for others do not see what it writes",
  async (_, end) => {
    using file = temporaryFile();
    const cells = sqliteCells(file.open());
    for (const expected of [1, 2]) expect(await count(cells)).toBe(expected);
    end(file);
    const others = sqliteCells(file.open());
    const began = await count(others);
    for (let round = 0; round < 2; round++) {
      await expect(count(cells)).rejects.toMatchObject({
        code: "POLITELY_STORE",
        isLasting: true,
        message: `The SQLite file was deleted, moved or replaced while it was open. Open it anew: others do not see what is written here.`,
      });
    }
    expect(await count(others)).toBe(began + 1);
  },
);

it.each(Object.entries(ends))("a path whose file was %s is opened anew, together with others", async (_, end) => {
  using file = temporaryFile();
  const lookup = process.getBuiltinModule.bind(process) as (id: string) => unknown;
  const found = (id: string): unknown => (id === "node:sqlite" ? { DatabaseSync: Database } : lookup(id));
  vi.spyOn(process, "getBuiltinModule").mockImplementation(found as typeof process.getBuiltinModule);
  const [one, other] = [sqliteCells(file.path), sqliteCells(file.path)];
  expect([await count(one), await count(other)]).toEqual([1, 2]);
  end(file);
  const late = sqliteCells(file.path);
  const began = await count(late);
  expect([await count(one), await count(other), await count(late)]).toEqual([began + 1, began + 2, began + 3]);
  for (const cells of [one, other, late]) cells.close();
});

it("a handle in memory, and one on a platform that cannot look at files, go on", async () => {
  const memory = new Database(":memory:");
  const cells = sqliteCells(memory);
  expect([await count(cells), await count(cells)]).toEqual([1, 2]);
  memory.close();

  using file = temporaryFile();
  vi.spyOn(process, "getBuiltinModule").mockImplementation(() => undefined);
  const blind = sqliteCells(file.open());
  expect(await count(blind)).toBe(1);
  rmSync(file.path);
  expect(await count(blind)).toBe(2);
});
