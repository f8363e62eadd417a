import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import pg from "pg";
import { expect, it } from "vitest";
import { startPostgres } from "../../../politely/test/servers/postgres.js";
import { postgresQueue } from "../../src/get/queue/postgresQueue.js";
import { openStore } from "../../src/stores/openStore.js";

/** A way to a server that can be told to pass nothing on, with its connections open. */
async function startWay(address: string): Promise<AsyncDisposable & { url: string; silence(): void }> {
  const url = new URL(address);
  const port = Number(url.port);
  const sockets = new Set<Socket>();
  const server = createServer((near) => {
    const far = connect(port, url.hostname);
    for (const socket of [near, far]) {
      sockets.add(socket);
      socket.on("error", () => undefined);
    }
    near.pipe(far);
    far.pipe(near);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  url.port = String((server.address() as AddressInfo).port);
  return {
    url: url.href,
    silence() {
      for (const socket of sockets) socket.unpipe().pause();
    },
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}

it("closes a pool whose server is connected and silent, within two seconds or so", async () => {
  await using server = await startPostgres();
  await using way = await startWay(server.url);
  const opened = await openStore(way.url, { cwd: "/", kinds: ["postgres"] });
  if (opened.kind !== "postgres") throw new Error("another store was opened");
  way.silence();
  const asked = opened.pool.query("SELECT 1").catch((error: Error) => error);
  await delay(50);
  const beganMs = performance.now();
  await opened.close();
  expect(performance.now() - beganMs).toBeLessThan(4_000);
  expect(await asked).toBeInstanceOf(Error);
});

it("begins a list in PostgreSQL though that takes longer than other questions may", async () => {
  await using server = await startPostgres();
  const pool = new pg.Pool({ connectionString: server.url, max: 3, query_timeout: 400 });
  const other = new pg.Client({ connectionString: server.url });
  // The server's end reaches connections that are open still.
  pool.on("error", () => undefined);
  other.on("error", () => undefined);
  await other.connect();
  try {
    const queue = await postgresQueue(pool, { name: "list", worker: "w", leaseMs: 30_000 });
    await queue.add([{ url: "https://a/1", key: "a" }]);
    // Somebody else begins the same list, and takes his time.
    await other.query("BEGIN");
    await other.query("SELECT pg_advisory_xact_lock(7049317, hashtext('list'))");
    const beginning = queue.begin({ again: false });
    await delay(1_000);
    await other.query("COMMIT");
    expect(await beginning).toBe(false);
    expect(await queue.claim("a", 1)).toEqual(["https://a/1"]);
  } finally {
    await other.end();
    await pool.end();
  }
});
