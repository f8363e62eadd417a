import type { Socket } from "node:net";
import { expect, it } from "vitest";
import { feedRoutes } from "../../src/serve/feed/feedRoutes.js";
import { requestText, Started, until } from "./started.js";

const acquire = requestText("/v1/acquire", { domain: "x.org" });
const get = (path: string): string => `GET ${path} HTTP/1.1\r\nhost: localhost\r\n\r\n`;

/** A service where the only place at x.org is taken, and a connection on which the first request waits for it. */
async function behindWait(options: Parameters<typeof Started.with>[0] = {}): Promise<[Started, Socket]> {
  const started = await Started.with({ policy: { default: { concurrency: 1 } }, ...options });
  await started.post("/v1/acquire", { domain: "x.org" });
  const socket = await started.connect();
  socket.write(acquire);
  await until(() => started.service.callers.size === 1, "one waits");
  return [started, socket];
}

it("gives the places of those back who read events behind a wait, once their connection is gone", async () => {
  const [service, socket] = await behindWait({ maxReaders: 10 });
  await using started = service;
  socket.write(get("/v1/events").repeat(12));
  await until(() => started.turnedAway.counts.events === 2, "all places are taken");
  socket.destroy();
  await until(() => started.service.callers.size === 0, "its end is noticed");
  const response = await fetch(`${started.url}/v1/events`);
  expect(response.status).toBe(200);
  await response.body?.cancel();
});

it("gives the places of those back who read the feed behind a wait, once their connection is gone", async () => {
  const [service, socket] = await behindWait({
    addData: (app, { limiter, book, turnedAway }) =>
      feedRoutes(app, { limiter, policy: () => book.current(), isWritable: false, turnedAway }),
  });
  await using started = service;
  socket.write(get("/v1/feed").repeat(66));
  await until(() => started.turnedAway.counts.feed === 2, "all places are taken");
  socket.destroy();
  await until(() => started.service.callers.size === 0, "its end is noticed");
  const response = await fetch(`${started.url}/v1/feed`);
  expect(response.status).toBe(200);
  await response.body?.cancel();
});

it("ends the waits of a connection that asks for much behind them, rather than not notice when it is gone", async () => {
  const [service, socket] = await behindWait();
  await using started = service;
  socket.write(acquire.repeat(49) + get("/v1/openapi.json").repeat(10));
  await until(() => started.service.callers.size === 0, "nobody waits");
  expect(started.limiter.stats("x.org")).toMatchObject({ waiting: 0, cancelled: 50 });
  expect(socket.bytesRead).toBe(0);
});

it("answers all who stand in line on one connection, however long their answers are, when nobody waits", async () => {
  await using started = await Started.with();
  const socket = await started.connect();
  let text = "";
  socket.on("data", (chunk: Buffer) => {
    text += chunk.toString("latin1");
  });
  const count = (): number => text.split("HTTP/1.1 200 OK").length - 1;
  socket.write(get("/v1/openapi.json").repeat(20));
  await until(() => count() > 0, "the first is answered");
  socket.write(get("/v1/openapi.json").repeat(20));
  await until(() => count() >= 40, "all are answered");
  expect(count()).toBe(40);
  socket.destroy();
});

it("closes a connection that asks for more and more without reading, before it has made most of the answers", async () => {
  let made = 0;
  await using started = await Started.with({
    addData: (app) =>
      void app.get("/long", async (_request, reply) => {
        made += 1;
        return reply.send(Buffer.alloc(2 ** 20));
      }),
  });
  const socket = await started.connect();
  socket.pause().write(get("/long").repeat(1_000));
  await until(() => started.accepted.at(-1)?.destroyed === true, "it is closed");
  expect(made).toBeLessThanOrEqual(100);
  expect((await started.get("/healthz")).status).toBe(200);
});

it("closes a connection whose answer is not taken, and leaves those who wait or read slowly", async () => {
  await using started = await Started.with({
    policy: { default: { concurrency: 1 } },
    server: { unreadMs: 500 },
    addData: (app) => void app.get("/long", async (_request, reply) => reply.send(Buffer.alloc(50 * 2 ** 20))),
  });
  const { body } = await started.post("/v1/acquire", { domain: "x.org" });
  const waiting = started.post("/v1/acquire", { domain: "x.org" });
  const [deaf, slow] = [await started.connect(), await started.connect()];
  deaf.pause().write(get("/long"));
  slow.pause().write(get("/long"));
  const sip = setInterval(() => void slow.read(2 ** 20), 20);
  const closed = (socket: Socket): boolean =>
    started.accepted.find(({ remotePort }) => remotePort === socket.localPort)?.destroyed ?? true;
  const beganMs = performance.now();
  await until(() => closed(deaf), "the answer that nobody takes is given up");
  await until(() => performance.now() - beganMs > 1_200, "more than twice that time has passed");
  expect(closed(slow)).toBe(false);
  clearInterval(sip);
  await started.post("/v1/release", { permit: body.permit });
  expect((await waiting).status).toBe(200);
});
