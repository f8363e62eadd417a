// Opens a file that is new, as the documentation does it, at the same moment as others, and counts up a cell.
// node opened.mjs <store> <file> <"path" or "handle"> <startsAtMs>
const [store, file, how, startsAtMs] = process.argv.slice(2);
const { sqliteCells } = await import(store);
const { default: Database } = how === "handle" ? await import("libsql") : {};

await new Promise((resolve) => setTimeout(resolve, Number(startsAtMs) - Date.now()));
let source = file;
if (how === "handle") {
  source = new Database(file);
  source.exec("PRAGMA busy_timeout = 5000; PRAGMA synchronous = NORMAL; PRAGMA busy_timeout = 0");
}
const cells = sqliteCells(source);
await cells.change(["counter"], ([old]) => ({
  writes: [{ index: 0, value: String(Number(old ?? 0) + 1), ttlUs: 600_000_000 }],
  answer: undefined,
}));
cells.close();
