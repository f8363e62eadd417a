// Changes one cell, and stands still inside each call of the change until it is let go. Then changes it once more.
import { parentPort, workerData } from "node:worker_threads";
import pg from "pg";
import postgres from "postgres";

const { libraryUrl, url, table, flags, kind } = workerData;
const { postgresCells } = await import(`${libraryUrl}stores/postgres.js`);
const client = kind === "pg" ? new pg.Pool({ connectionString: url }) : postgres(url);
const cells = postgresCells(client, { table, timeoutMs: 6_000 });
const add = (before) =>
  cells.change(["held"], ([old]) => {
    before();
    const value = String(Number(old) + 1);
    return { writes: [{ index: 0, value, ttlUs: 60_000_000 }], answer: value };
  });

try {
  await add(() => {
    const call = Atomics.add(flags, 0, 1) + 1;
    Atomics.notify(flags, 0);
    Atomics.wait(flags, 1, call - 1);
  });
} catch (error) {
  parentPort.postMessage(error.code);
}
parentPort.postMessage(`calls: ${flags[0]}`);
parentPort.postMessage(await add(() => {}));
await client.end();
