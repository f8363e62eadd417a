import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { setImmediate } from "node:timers/promises";
import { afterAll, beforeAll, expect, it } from "vitest";
import { politely } from "../../../src/politely.js";
import { postgresStore } from "../../../src/stores/postgres.js";
import { type PostgresServer, startPostgres } from "../../servers/postgres.js";
import { openPlace } from "./place.js";

let server: PostgresServer;
beforeAll(async () => {
  server = await startPostgres();
}, 60_000);
afterAll(() => server.stop());

/** A way to the server on which the connections that are open can be made to hang, and new ones are well. */
async function openWay(target: URL) {
  const pairs = new Set<readonly [Socket, Socket]>();
  const listener = createServer((client) => {
    const there = connect(Number(target.port), target.hostname);
    const pair = [client, there] as const;
    pairs.add(pair);
    for (const socket of pair) socket.on("error", () => undefined).on("close", () => pairs.delete(pair));
    client.pipe(there).pipe(client);
  }).listen(0, "127.0.0.1");
  await once(listener, "listening");
  const url = new URL(target);
  url.port = String((listener.address() as AddressInfo).port);
  url.hostname = "127.0.0.1";
  return {
    url: url.href,
    hang(): number {
      const hung = pairs.size;
      for (const [client, there] of pairs) {
        client.unpipe(there);
        there.unpipe(client);
      }
      pairs.clear();
      return hung;
    },
    async [Symbol.asyncDispose]() {
      for (const pair of pairs) for (const socket of pair) socket.destroy();
      listener.close();
    },
  };
}

it("a connection that hangs is no outage: the question is asked again on another", async () => {
  await using place = await openPlace(server);
  await using way = await openWay(new URL(server.url));
  const pool = place.pool({ connectionString: way.url });
  const store = postgresStore(pool, { table: place.table });
  const polite = politely({ default: { window: "100/h" } }, { store, outage: "closed" });
  const outages: string[] = [];
  polite.subscribe((event) => {
    if (event.type === "outage") outages.push(event.message);
  });
  // After the first one the table is swept.
  await polite.acquire("x.org");
  await polite.acquire("x.org");
  while (pool.idleCount < pool.totalCount) await setImmediate();
  expect(way.hang()).toBe(pool.totalCount);
  const askedMs = performance.now();
  await polite.acquire("x.org");
  expect(performance.now() - askedMs).toBeLessThan(4_000);
  expect(outages).toEqual([]);
  expect(await polite.stats("x.org", { fleet: true })).toMatchObject({ totalRequests: 3 });
  await polite.close();
});
