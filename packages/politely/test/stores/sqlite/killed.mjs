// Moves units from one cell to another, and is killed inside a transaction: after its writes, before its commit.
// node killed.mjs <store> <file> <commits before>
import Database from "libsql";

const [store, file, commits] = process.argv.slice(2);
const { sqliteCells } = await import(store);
const handle = new Database(file);
let isArmed = false;
const deadly = {
  prepare: (sql) => handle.prepare(sql),
  exec(sql) {
    if (isArmed && sql === "COMMIT") process.kill(process.pid, "SIGKILL");
    return handle.exec(sql);
  },
};

const cells = sqliteCells(deadly);
for (let done = 0; ; done++) {
  isArmed = done === Number(commits);
  await cells.change(["from", "to"], ([from, to]) => ({
    writes: [
      { index: 0, value: String(Number(from ?? 100) - 1), ttlUs: 600_000_000 },
      { index: 1, value: String(Number(to ?? 0) + 1), ttlUs: 600_000_000 },
    ],
    answer: undefined,
  }));
}
