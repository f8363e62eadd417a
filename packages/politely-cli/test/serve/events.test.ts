import { once } from "node:events";
import { politely } from "politely";
import { expect, it } from "vitest";
import type { ServiceLimiter } from "../../src/serve/serviceLimiter.js";
import { FakeTicker } from "../view/fakeIo.js";
import { Started, until } from "./started.js";

/** Reads events until told to stop. */
async function read(started: Started, query = "") {
  const leave = new AbortController();
  const response = await fetch(`${started.url}/v1/events${query}`, { signal: leave.signal });
  expect(response.headers.get("content-type")).toContain("text/event-stream");
  // A reverse proxy in front would otherwise collect them.
  expect(response.headers.get("x-accel-buffering")).toBe("no");
  const seen = { text: "" };
  const done = (async () => {
    const decoder = new TextDecoder();
    for await (const chunk of response.body ?? []) seen.text += decoder.decode(chunk, { stream: true });
  })().catch(() => undefined);
  return { seen, done, leave: () => leave.abort() };
}

function eventsOf(text: string): { type: string; data: Record<string, unknown> }[] {
  return [...text.matchAll(/event: (\w+)\ndata: (.*)\n\n/g)].map(([, type, data]) => ({
    type,
    data: JSON.parse(data) as Record<string, unknown>,
  }));
}

it("tells what happens as it happens, all of it or what was asked for", async () => {
  await using started = await Started.with();
  const all = await read(started);
  const some = await read(started, "?domain=https://B.org/x&type=grant,release");
  for (const domain of ["a.org", "b.org"]) {
    const { body } = await started.post("/v1/acquire", { domain });
    await started.post("/v1/release", { permit: body.permit, outcome: "rate_limited" });
  }
  await until(() => eventsOf(all.seen.text).length >= 6 && eventsOf(some.seen.text).length >= 2, "events arrive");
  const told = (text: string) => eventsOf(text).map(({ type, data }) => `${type} ${String(data.key)}`);
  expect(told(some.seen.text)).toEqual(["grant b.org", "release b.org"]);
  expect(told(all.seen.text)).toEqual(expect.arrayContaining(["grant a.org", "cooldown a.org", "release b.org"]));
  for (const { type, data } of eventsOf(all.seen.text)) expect(data.type).toBe(type);
  for (const reader of [all, some]) {
    reader.leave();
    await reader.done;
  }
});

it("refuses event types that do not exist, and more readers than it can bear", async () => {
  await using started = await Started.with({ maxReaders: 1 });
  const wrong = await started.get("/v1/events?type=grant,grnat");
  expect([wrong.status, wrong.body.errors]).toEqual([
    422,
    [{ field: "type", message: expect.stringContaining("grnat") as unknown }],
  ]);
  const reader = await read(started);
  const second = await started.get("/v1/events");
  expect([second.status, second.headers.get("retry-after")]).toEqual([503, "10"]);
  reader.leave();
  await reader.done;
});

it("keeps no place for readers that went while the store was asked, and lets no more in than there is room for", async () => {
  const asked: (() => void)[] = [];
  await using started = await Started.with({
    maxReaders: 2,
    wrap: (limiter) =>
      Object.assign(Object.create(limiter) as ServiceLimiter, {
        subscribe: limiter.subscribe.bind(limiter),
        explain: async (target: string) => {
          await new Promise<void>((resolve) => asked.push(resolve));
          return limiter.explain(target);
        },
      }),
  });
  const question = "GET /v1/events?domain=a.org HTTP/1.1\r\nhost: localhost\r\n\r\n";
  const gone = await Promise.all(Array.from({ length: 10 }, () => started.connect()));
  for (const socket of gone) socket.write(question);
  await until(() => asked.length === 10, "the store is asked");
  for (const socket of gone) socket.resetAndDestroy();
  await until(() => started.accepted.filter((socket) => socket.destroyed).length >= 10, "they have gone");
  for (const answer of asked.splice(0)) answer();

  const staying = await Promise.all(Array.from({ length: 5 }, () => started.connect()));
  const begins = staying.map(async (socket) => {
    socket.write(question);
    const [chunk] = (await once(socket, "data")) as [Buffer];
    return chunk.toString().slice(9, 12);
  });
  await until(() => asked.length === 5, "the store is asked again");
  for (const answer of asked.splice(0)) answer();
  expect((await Promise.all(begins)).sort()).toEqual(["200", "200", "503", "503", "503"]);

  const [late] = staying.map((socket) => socket.destroy());
  await until(
    () => started.accepted.every((socket) => socket.destroyed || socket.remotePort !== late.localPort),
    "gone",
  );
  const last = await started.connect();
  last.write(question);
  await until(() => asked.length === 1, "the store is asked for the last time");
  started.service.dismiss();
  asked[0]();
  expect(((await once(last, "data")) as [Buffer])[0].toString().slice(9, 12)).toBe("503");
  last.destroy();
});

it("listens to the limiter only while somebody reads, and sends a comment each 15 s", async () => {
  const ticker = new FakeTicker();
  await using started = await Started.with({ ticker });
  expect(ticker.running).toBe(0);
  const reader = await read(started);
  await until(() => ticker.running === 1, "it listens");
  ticker.advance(30_000);
  await until(() => reader.seen.text === ":\n\n:\n\n", "two comments");
  reader.leave();
  await reader.done;
  await until(() => ticker.running === 0, "it has stopped listening");
});

it("ends the stream when the service stops", async () => {
  await using started = await Started.with();
  const reader = await read(started);
  started.service.dismiss();
  await reader.done;
  expect((await started.get("/v1/events")).status).toBe(503);
});

it("lets a reader that is too slow lose events, tells it how many, and drops it when it takes nothing for a minute", async () => {
  const ticker = new FakeTicker();
  const limiter = politely({ default: { rate: "1000000/s", burst: 1_000_000 } });
  await using started = await Started.with({ ticker, limiter });
  const socket = await started.connect();
  socket.write("GET /v1/events?type=grant HTTP/1.1\r\nhost: localhost\r\n\r\n");
  await once(socket, "data");
  socket.pause();
  // More than what the buffers of both ends and of the service hold.
  const granted = 120_000;
  const before = process.memoryUsage().rss;
  for (let count = 0; count < granted; count++) {
    limiter.tryAcquire("x.org")?.release();
    if (count % 1_000 === 0) await new Promise(setImmediate);
  }
  expect(process.memoryUsage().rss - before).toBeLessThan(150e6);
  let text = "";
  socket.on("data", (chunk: Buffer) => {
    text += chunk.toString();
  });
  socket.resume();
  const lost = () => [...text.matchAll(/event: lost\ndata: \{"count":(\d+)\}/g)].map(([, count]) => Number(count));
  const told = () => [...text.matchAll(/event: grant\n/g)].length;
  await until(() => {
    // What was lost last is told with the next comment.
    ticker.advance(15_000);
    return told() + lost().reduce((sum, count) => sum + count, 0) >= granted;
  }, "each event is told or said to be lost");
  expect(told() + lost().reduce((sum, count) => sum + count, 0)).toBe(granted);
  expect(lost().length).toBeGreaterThan(0);

  socket.pause();
  for (let count = 0; count < granted; count++) {
    limiter.tryAcquire("x.org")?.release();
    if (count % 1_000 === 0) await new Promise(setImmediate);
  }
  ticker.advance(60_000);
  await until(() => ticker.running === 0, "it was dropped");
  socket.destroy();
});
