// Reads a cell, writes it anew, and says what it was, what time the store has, and what the wall clock says.
// node look.mjs <store> <file>
import Database from "libsql";

const [store, file] = process.argv.slice(2);
const { sqliteCells } = await import(store);
const cells = sqliteCells(new Database(file));
const answer = await cells.change(["cell"], ([old], nowUs) => ({
  writes: [{ index: 0, value: `${old ?? ""}x`, ttlUs: 30_000_000 }],
  answer: { old, nowUs },
}));
console.log(JSON.stringify({ ...answer, wallMs: Date.now() }));
