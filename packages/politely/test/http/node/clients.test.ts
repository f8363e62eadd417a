import http from "node:http";
import axios from "axios";
import { describe, expect, it } from "vitest";
import { type Exchange, exchangeOf } from "../../../src/http/exchange.js";
import { type NodeHttp, paceAllAgents } from "../../../src/http/node/agents.js";
import { paceRequest } from "../../../src/http/node/paceRequest.js";
import { type Limiter, type Limits, politely } from "../../../src/index.js";
import { type HttpWorld, inHttpWorld, pause, reply, until } from "../../../src/testing/httpWorld.js";
import { clients, tablesOf } from "./clients.js";

/** Whose limiter paces this process at the moment. */
let exchange: Exchange | undefined;
paceAllAgents(http as unknown as NodeHttp, (sent, connection, proceed) => {
  if (exchange === undefined) proceed();
  else paceRequest(exchange, sent, connection, proceed);
});

async function play(limits: Limits, run: (world: HttpWorld<undefined>) => Promise<void>) {
  const makeClient = (limiter: Limiter): undefined => {
    exchange = exchangeOf(limiter, "a test");
  };
  try {
    const policy = (a: string, b: string) => ({ hosts: { [a]: limits, [b]: limits } });
    await inHttpWorld({ makeLimiter: politely, makeClient, policy }, async (world) => {
      for (const site of [world.a, world.b]) {
        site.answer = (_request, answer) => reply(answer, 200, JSON_TYPE, tablesOf("a"));
      }
      await run(world);
    });
  } finally {
    exchange = undefined;
  }
}

const JSON_TYPE = { "content-type": "application/json" };

describe.each(clients)("an unchanged program with $name", ({ ask, follows, aborts }) => {
  it("keeps the gap between its starts", () =>
    play({ minDelay: 40 }, async ({ a, events }) => {
      const answers = await Promise.all([1, 2, 3].map(() => ask(`${a.origin}/page`)));
      expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
      const starts = events.flatMap((event) => (event.type === "grant" ? [event.atMs] : []));
      expect([starts.length, a.requests.length]).toEqual([3, 3]);
      for (const [index, atMs] of starts.slice(1).entries()) expect(atMs - starts[index]).toBeGreaterThanOrEqual(40);
    }));

  it("stays away from a host that answers with 429, and takes nothing when it is given up meanwhile", () =>
    play({ concurrency: 4 }, async ({ a, limiter }) => {
      a.answer = (_request, answer) =>
        reply(answer, 429, { ...JSON_TYPE, "retry-after": "7" }, '{"error":{"message":"slow down"}}');
      expect(await ask(`${a.origin}/page`)).toMatchObject({ status: 429 });
      expect(limiter.stats(a.key)?.cooldownMs).toBeGreaterThan(6_000);
      const controller = new AbortController();
      const waiting = ask(`${a.origin}/page`, controller.signal).then(
        () => "answered",
        () => "failed",
      );
      await until("it waits", () => limiter.stats(a.key)?.waiting === 1);
      if (aborts) controller.abort();
      else limiter.cancelWaiting(a.key);
      expect(await waiting).toBe("failed");
      await pause(10);
      expect(a.requests).toHaveLength(1);
      expect(limiter.stats(a.key)).toMatchObject({ granted: 1, cancelled: 1, waiting: 0, inFlight: 0 });
    }));

  it("gets bodies of 2 MB whole, over as few connections as without a limiter", () =>
    play({ concurrency: 4 }, async ({ a, events }) => {
      const paced = exchange;
      const name = "x".repeat(2_000_000);
      a.answer = (_request, answer) => reply(answer, 200, JSON_TYPE, tablesOf(name));
      const connections: number[] = [];
      for (const each of [undefined, paced]) {
        exchange = each;
        a.requests.length = 0;
        for (let count = 0; count < 3; count++) expect((await ask(`${a.origin}/page`)).table === name).toBe(true);
        connections.push(new Set(a.requests.map(({ socket }) => socket)).size);
        http.globalAgent.destroy();
      }
      expect(connections[1]).toBe(connections[0]);
      expect(events.filter(({ type }) => type === "grant")).toHaveLength(3);
    }));

  it.runIf(follows)("counts each redirect at its own host", () =>
    play({ concurrency: 1 }, async ({ a, b, events }) => {
      a.answer = (_request, answer) => reply(answer, 302, { location: `${b.origin}/end` });
      expect(await ask(`${a.origin}/page`)).toEqual({ status: 200, table: "a" });
      expect(events.flatMap(({ type, key }) => (type === "grant" ? [key] : []))).toEqual([a.key, b.key]);
    }),
  );
});

describe("an unchanged program with axios", () => {
  it("does not count the wait towards its timeout, also behind a redirect", () =>
    play({ minDelay: 250 }, async ({ a, b }) => {
      a.answer = (_request, answer) => reply(answer, 302, { location: `${b.origin}/end` });
      const urls = [a.origin, a.origin, b.origin];
      const answers = await Promise.all(urls.map((url) => axios.get(url, { timeout: 240 })));
      expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
    }));

  it("still has its timeout, in the hop that waited", () =>
    play({ minDelay: 50 }, async ({ a, b }) => {
      await axios.get(b.origin);
      a.answer = (_request, answer) => reply(answer, 302, { location: `${b.origin}/end` });
      b.answer = () => undefined;
      await expect(axios.get(a.origin, { timeout: 60 })).rejects.toMatchObject({ code: "ECONNABORTED" });
    }));
});
