import { createServer } from "node:net";
import { Redis } from "ioredis";
import { createClient } from "redis";
import { expect, it } from "vitest";
import type { StoreError } from "../../src/errors.js";
import { politely } from "../../src/politely.js";
import { redisStore } from "../../src/stores/redis.js";
import type { Store } from "../../src/stores/store.js";

/** A port of this machine that nobody listens on. */
async function closedPort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  return typeof address === "object" && address !== null ? address.port : 1;
}

async function failureOf(store: Store): Promise<{ readonly error: StoreError; readonly outage: string }> {
  const limiter = politely({ default: { rate: "10/s" } }, { store, outage: "closed" });
  let outage = "";
  limiter.subscribe((event) => {
    if (event.type === "outage") outage = event.message;
  });
  const error = await limiter.acquire("x.org").catch((reason: unknown) => reason as StoreError);
  await limiter.close();
  return { error: error as StoreError, outage };
}

it("a Redis that refuses connections is named in the error and in the outage event, by the words of either client", async () => {
  const port = await closedPort();
  const heard: string[] = [];
  const ioredis = new Redis({ port, host: "127.0.0.1" });
  const nodeRedis = createClient({ url: `redis://127.0.0.1:${port}` });
  for (const client of [ioredis, nodeRedis]) client.on("error", (error: Error) => heard.push(error.message));
  nodeRedis.connect().catch(() => undefined);
  const failures = await Promise.all([failureOf(redisStore(ioredis)), failureOf(redisStore(nodeRedis))]);
  ioredis.disconnect();
  nodeRedis.destroy();
  const words = `connect ECONNREFUSED 127.0.0.1:${port}`;
  for (const { error, outage } of failures) {
    expect(error).toMatchObject({ code: "POLITELY_STORE", isLasting: false, cause: { code: "ECONNREFUSED" } });
    expect(error.message).toContain(words);
    expect(outage).toContain(words);
    expect(outage).toContain("every request is refused with a StoreError until it is back");
  }
  expect(heard.length).toBeGreaterThan(1);
});

it("leaves a client alone whose errors nobody hears", async () => {
  const client = new Redis({ lazyConnect: true });
  redisStore(client)
    .transact(["x"], { kind: "look", keys: [] })
    .catch(() => undefined);
  expect(client.listenerCount("error")).toBe(0);
  client.disconnect();
});
