import { expect, it } from "vitest";
import { startOrigin } from "./origin.js";
import { raw, startProxy } from "./place.js";

const limits = { hosts: { "127.0.0.1": { concurrency: 4 } } };

it.each(["TRACE", "OPTIONS"])("answers a %s with Max-Forwards: 0 itself, and takes no turn for it", async (method) => {
  await using site = await startOrigin();
  await using place = await startProxy(limits);
  const head = `${method} ${site.url}/ HTTP/1.1\r\nHost: x\r\nCookie: secret=1\r\nMax-Forwards: 0\r\n\r\n`;
  expect(await raw(place.port, head)).toMatch(/^HTTP\/1\.1 405 [\s\S]*\r\nAllow: GET/);
  expect(site.seen).toHaveLength(0);
  expect(place.limiter.stats("127.0.0.1")?.granted ?? 0).toBe(0);
});

it.each([
  ["TRACE", "3", "2"],
  ["OPTIONS", "1", "0"],
  ["OPTIONS", "many", "many"],
  ["GET", "0", "0"],
])("passes a %s with Max-Forwards: %s on with %s", async (method, given, passed) => {
  await using site = await startOrigin();
  await using place = await startProxy(limits);
  const head = `${method} ${site.url}/ HTTP/1.1\r\nHost: x\r\nMax-Forwards: ${given}\r\nConnection: close\r\n\r\n`;
  expect(await raw(place.port, head)).toMatch(/^HTTP\/1\.1 200 /);
  expect(site.seen[0].headers["max-forwards"]).toBe(passed);
});
