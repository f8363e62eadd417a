// Runs in a project that has nothing but the packed library and libsql: a few calls of each kind, with the Node that runs this.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { join } from "node:path";
import { politely } from "politely";
import { sqliteStore } from "politely/sqlite";

await fetchIsPaced();
await processesShareAFile();
console.log(`Node ${process.versions.node}: ok`);

/** Three requests to a local site, 40 ms apart; the third is answered with a 429 that holds the host. */
async function fetchIsPaced() {
  /** @type {number[]} */
  const arrivals = [];
  const site = createServer((_, response) => {
    arrivals.push(performance.now());
    response.writeHead(arrivals.length === 3 ? 429 : 200, arrivals.length === 3 ? { "retry-after": "30" } : {});
    response.end("text");
  });
  await new Promise((resolve) => site.listen(0, "127.0.0.1", () => resolve(undefined)));
  const address = site.address();
  assert(address !== null && typeof address === "object");
  const url = `http://127.0.0.1:${address.port}/`;
  const polite = politely({ localhost: "limited", default: { minDelay: "40ms", countFrom: "answer" } });
  const pages = await Promise.all([1, 2, 3].map(async () => (await polite.fetch(url)).text()));
  assert.deepEqual(pages, ["text", "text", "text"]);
  for (const index of [1, 2]) {
    const gapMs = (arrivals[index] ?? 0) - (arrivals[index - 1] ?? 0);
    assert(gapMs >= 40, `Request ${index + 1} came ${gapMs} ms after the one before it instead of 40 ms.`);
  }
  const { waitMs } = polite.check(url);
  assert(waitMs > 25_000, `The next request would wait ${waitMs} ms; Retry-After asked for 30 s.`);
  await polite.close();
  site.close();
  site.closeAllConnections();
}

/** Two limiters with one SQLite file start no more than the file allows both of them. */
async function processesShareAFile() {
  const file = join(import.meta.dirname, `limits-${process.versions.node}.db`);
  const stores = [await openStore(file), await openStore(file)];
  const limiters = stores.map((store) => politely({ default: { window: "3/h" } }, { store }));
  const tries = [0, 1, 0, 1, 0, 1].map((index) => limiters[index]);
  let grantedCount = 0;
  for (const limiter of tries) if ((await limiter?.tryAcquire("example.com")) !== undefined) grantedCount++;
  assert.equal(grantedCount, 3, `${grantedCount} of 6 were granted; the window is 3 an hour.`);
  for (const limiter of limiters) await limiter.close();
  for (const store of stores) store.close();
}

/** By its path where there is a `node:sqlite`, else through libsql. @param {string} file */
async function openStore(file) {
  if (process.getBuiltinModule("node:sqlite") !== undefined) return sqliteStore(file);
  const { default: Database } = await import("libsql");
  return sqliteStore(new Database(file));
}
