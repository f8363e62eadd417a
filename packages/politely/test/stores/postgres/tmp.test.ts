import { afterAll, beforeAll, it } from "vitest";
import { politely } from "../../../src/politely.js";
import { postgresStore } from "../../../src/stores/postgres.js";
import { faultyProxy } from "../../servers/faultyProxy.js";
import { type PostgresServer, startPostgres } from "../../servers/postgres.js";
import { openPlace } from "./place.js";

let server: PostgresServer;
beforeAll(async () => {
  server = await startPostgres();
}, 60_000);
afterAll(() => server.stop());
it("x", async () => {
  for (const [tripMs, limits, hold] of [
    [10, { rate: "50/s" }, 0],
    [50, { rate: "50/s" }, 0],
    [50, { rate: "20/s" }, 0],
    [50, { concurrency: 5 }, 200],
  ] as const) {
    const { hostname, port } = new URL(server.url);
    await using proxy = await faultyProxy({ host: hostname, port: Number(port) });
    proxy.delay(tripMs / 2);
    await using place = await openPlace(server);
    const url = new URL(server.url);
    url.host = `${proxy.host}:${proxy.port}`;
    const limiters = Array.from({ length: 8 }, () =>
      politely(
        { default: limits },
        { store: postgresStore(place.pool({ connectionString: url.href }), { table: place.table }), outage: "closed" },
      ),
    );
    await Promise.all(limiters.map((l) => l.acquire("y.org").then((p) => p.release())));
    let starts = 0,
      over = false;
    const each = limiters.map(() => 0);
    for (const [i, l] of limiters.entries())
      for (let n = 0; n < 6; n++)
        void (async () => {
          while (!over) {
            const p = await l.acquire("x.org");
            starts++;
            each[i]++;
            if (hold) await new Promise((r) => setTimeout(r, hold));
            void p.release();
          }
        })().catch(() => 0);
    await new Promise((r) => setTimeout(r, 1500));
    const before = starts;
    const t = performance.now();
    await new Promise((r) => setTimeout(r, 5000));
    console.log(
      "RESULT",
      tripMs,
      JSON.stringify(limits),
      (((starts - before) / (performance.now() - t)) * 1000).toFixed(1),
      each.join(" "),
    );
    over = true;
    await Promise.all(limiters.map((l) => l.close()));
  }
}, 120_000);
