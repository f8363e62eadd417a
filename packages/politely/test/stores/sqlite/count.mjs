// Counts up one cell so many times, one change after the other. Fails when a change waits for 3 s. Says how long the longest took.
// node count.mjs <store> <file> <times> <startsAtMs>
import Database from "libsql";

const [store, file, times, startsAtMs] = process.argv.slice(2);
const { sqliteCells } = await import(store);
const handle = new Database(file);
// Another process may be making the file at this moment: only here it is waited for inside SQLite.
handle.exec("PRAGMA busy_timeout = 5000; PRAGMA synchronous = NORMAL; PRAGMA busy_timeout = 0");
const cells = sqliteCells(handle, { busyMs: 3_000 });

// All processes begin together.
await new Promise((resolve) => setTimeout(resolve, Number(startsAtMs) - Date.now()));
let longestMs = 0;
for (let done = 0; done < Number(times); done++) {
  const askedMs = performance.now();
  await cells.change(["counter"], ([old]) => ({
    writes: [{ index: 0, value: String(Number(old ?? 0) + 1), ttlUs: 600_000_000 }],
    answer: undefined,
  }));
  longestMs = Math.max(longestMs, performance.now() - askedMs);
}
console.log(JSON.stringify({ longestMs }));
