import { once } from "node:events";
import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { startOrigin } from "./origin.js";
import { eventually, isSettled, rawConnection, startProxy } from "./place.js";

const one = { hosts: { "127.0.0.1": { concurrency: 1 }, localhost: { concurrency: 4 } } };

/** The number of the timer that the kernel runs for each open connection at `port`: 2 is the one that asks whether the other side is there. */
function timersAt(port: number): number[] {
  const local = `:${port.toString(16).toUpperCase().padStart(4, "0")}`;
  return readFileSync("/proc/net/tcp", "utf8")
    .split("\n")
    .map((line) => line.trim().split(/\s+/))
    .filter(([, from, , state]) => from?.endsWith(local) && state === "01")
    .map(([, , , , , timer]) => Number(timer.split(":")[0]));
}

it("asks the other side of a silent connection whether it is there, so that a client that vanished is noticed", async () => {
  await using place = await startProxy(one);
  await place.limiter.acquire("127.0.0.1");
  const waiting = await rawConnection(place.port, "GET http://127.0.0.1:9/ HTTP/1.1\r\nHost: x\r\n\r\n");
  await eventually(() => place.proxy.waitingCount === 1, "it waits");
  expect(timersAt(place.port)).toEqual([2]);
  waiting.destroy();
  await eventually(() => place.proxy.waitingCount === 0, "nobody waits");
});

it("ends a connection on which more comes behind a wait and long answers, rather than not notice its end", async () => {
  await using site = await startOrigin((_, response) => response.end(Buffer.alloc(10_000)));
  await using place = await startProxy(one);
  const taken = await place.limiter.acquire("127.0.0.1");
  const get = (host: string): string => `GET http://${host}:${site.port}/ HTTP/1.1\r\nHost: x\r\n\r\n`;
  const client = await rawConnection(place.port, get("127.0.0.1").repeat(3) + get("localhost").repeat(8));
  await eventually(() => place.proxy.waitingCount === 3, "three wait");
  await eventually(() => place.limiter.stats("localhost")?.released === 8, "eight are answered");
  client.write(get("localhost"));
  await once(client, "close");
  await eventually(() => place.proxy.waitingCount === 0, "nobody waits");
  taken.release();
  await eventually(() => isSettled(place.limiter), "all places are free");
  expect(client.bytesRead).toBe(0);
});

it("is closed as soon as the last answer is out, though its client keeps the connection", async () => {
  let finish: () => void = () => undefined;
  await using site = await startOrigin((_, response) => {
    finish = () => void response.end("done");
  });
  await using place = await startProxy(one);
  const client = await rawConnection(place.port, `GET ${site.url}/ HTTP/1.1\r\nHost: x\r\n\r\n`);
  await site.until(1);
  const closed = place.proxy.close({ graceMs: 30_000 });
  finish();
  const startMs = performance.now();
  await once(client.resume(), "close");
  await closed;
  // The client would keep it for five seconds, and Node looks once a second.
  expect(performance.now() - startMs).toBeLessThan(3_000);
});
