import { once } from "node:events";
import { connect } from "node:net";
import { politely } from "politely";
import { expect, it } from "vitest";
import { metricsRoutes } from "../../src/serve/api/metricsRoutes.js";
import { feedRoutes } from "../../src/serve/feed/feedRoutes.js";
import { createProxy } from "../../src/serve/proxy/createProxy.js";
import { FakeTicker } from "../view/fakeIo.js";
import { Started, until } from "./started.js";

/** What the service says of itself; of those turned away, by the door. */
async function counts(started: Started): Promise<Record<string, number>> {
  const { text } = await started.get("/metrics");
  const found = [...text.matchAll(/^politely_service_(\w+)(?:\{door="(\w+)"\})? (\d+)$/gm)];
  return Object.fromEntries(found.map(([, name, door, count]) => [door ?? name, Number(count)]));
}

it("counts permits that lapsed and callers that were turned away where Prometheus sees them", async () => {
  const ticker = new FakeTicker();
  await using started = await Started.with({ ticker, maxPermits: 2, addData: metricsRoutes });
  expect(await counts(started)).toMatchObject({
    lapsed_permits_total: 0,
    acquire: 0,
    proxy: 0,
    permits: 0,
    waiting: 0,
  });
  for (const status of [200, 200, 503, 503, 503]) {
    expect((await started.post("/v1/acquire", { domain: "a.org", ttlMs: 1_000 })).status).toBe(status);
  }
  expect(await counts(started)).toMatchObject({ lapsed_permits_total: 0, acquire: 3, permits: 2 });
  ticker.advance(2_000);
  expect(await counts(started)).toMatchObject({ lapsed_permits_total: 2, acquire: 3, permits: 0 });
  const { text } = await started.get("/metrics");
  for (const name of ["lapsed_permits", "turned_away"]) {
    expect(text.match(new RegExp(`^# (HELP|TYPE) politely_service_${name}`, "gm"))).toHaveLength(2);
  }
  expect(text.endsWith("\n")).toBe(true);
});

it("counts readers that found no place, and connections beyond the bound", async () => {
  await using started = await Started.with({
    maxReaders: 0,
    server: { maxConnections: 70 },
    addData: (app, parts) => {
      metricsRoutes(app, parts);
      feedRoutes(app, {
        limiter: parts.limiter,
        policy: () => parts.book.current(),
        isWritable: false,
        turnedAway: parts.turnedAway,
      });
    },
  });
  expect((await started.get("/v1/events")).status).toBe(503);
  const away = new AbortController();
  for (let each = 0; each < 64; each++) await fetch(`${started.url}/v1/feed`, { signal: away.signal });
  expect((await started.get("/v1/feed")).status).toBe(503);
  expect(await counts(started)).toMatchObject({ events: 1, feed: 1, connections: 0 });
  const sockets = Array.from({ length: 20 }, () => connect(started.port, "127.0.0.1").on("error", () => undefined));
  await Promise.all(sockets.slice(10).map((socket) => once(socket, "close")));
  for (const socket of sockets) socket.destroy();
  away.abort();
  await until(() => started.turnedAway.counts.connections > 0, "a connection was dropped");
});

it("counts those whom the proxy turned away beside the others", async () => {
  await using started = await Started.with({ addData: metricsRoutes });
  const limiter = politely({ default: { rate: "1/h" }, localhost: "limited" });
  const { turnedAway } = started;
  const proxy = createProxy({ limiter, allowPrivate: true, maxWaiting: 1, log: () => undefined, turnedAway });
  proxy.server.listen(0, "127.0.0.1");
  await once(proxy.server, "listening");
  const { port } = proxy.server.address() as { port: number };
  const url = `http://127.0.0.1:${port}/http://127.0.0.1:${started.port}/healthz`;
  expect((await fetch(url)).status).toBe(200);
  const waiting = fetch(url).then(({ status }) => status);
  await until(() => proxy.waitingCount === 1, "one waits");
  expect((await fetch(url)).status).toBe(503);
  expect(await counts(started)).toMatchObject({ acquire: 0, proxy: 1 });
  await proxy.close({ graceMs: 1_000 });
  expect(await waiting).toBe(503);
  await limiter.close();
});
