import type { Readable } from "node:stream";
import axios, { type AxiosInstance } from "axios";
import { describe, expect, it } from "vitest";
import { politeAxios } from "../../../src/http/axios/index.js";
import { type Limiter, type PolicyInput, politely } from "../../../src/index.js";
import { type HttpWorld, inHttpWorld, openBody, reply, until } from "../../../src/testing/httpWorld.js";
import { VirtualClock } from "../../../src/testing/virtualClock.js";

type World = HttpWorld<AxiosInstance>;

function play(adapter: "http" | "fetch", run: (world: World) => Promise<void>) {
  return inHttpWorld(
    {
      makeLimiter: politely,
      makeClient: (limiter) => politeAxios(axios.create({ adapter, responseType: "stream" }), limiter),
      policy,
    },
    run,
  );
}

const outcomes = ({ events }: World): string[] =>
  events.flatMap((event) => (event.type === "release" ? [event.outcome] : []));

describe("a stream of politeAxios", () => {
  it("keeps its place until it is read to its end", () =>
    play("http", async (world) => {
      const { client, limiter, a } = world;
      const { data } = await client.get<Readable>(`${a.origin}/body`);
      expect(limiter.stats(a.key)?.inFlight).toBe(1);
      expect((await data.setEncoding("utf8").toArray()).join("")).toBe("/body");
      await until("the place is free", () => limiter.stats(a.key)?.inFlight === 0);
      expect(outcomes(world)).toEqual(["neutral"]);
    }));

  it("keeps it also when the status is refused", () =>
    play("http", async ({ client, limiter, a }) => {
      a.answer = (_request, answer) => reply(answer, 400, {}, "why");
      const error: unknown = await client.get(a.origin).catch((caught: unknown) => caught);
      if (!axios.isAxiosError<Readable>(error)) throw error;
      expect(limiter.stats(a.key)?.inFlight).toBe(1);
      expect((await error.response?.data.setEncoding("utf8").toArray())?.join("")).toBe("why");
    }));

  it("frees its place when it is destroyed, or aborted, which is not the site's fault", () =>
    play("http", async (world) => {
      const { client, a } = world;
      openBody(a, 200);
      const destroyed = await client.get<Readable>(a.origin);
      destroyed.data.destroy();
      await until("the first place is free", () => outcomes(world).length === 1);
      const controller = new AbortController();
      const aborted = await client.get<Readable>(a.origin, { signal: controller.signal });
      const failure = aborted.data.toArray().catch((error: unknown) => error);
      controller.abort();
      expect(axios.isCancel(await failure)).toBe(true);
      await until("the second place is free", () => outcomes(world).length === 2);
      expect(outcomes(world)).toEqual(["neutral", "neutral"]);
    }));

  it("is judged by its status when it breaks off", () =>
    play("http", async (world) => {
      const { client, a } = world;
      a.answer = ({ socket }, answer) => {
        answer.writeHead(200, { "content-length": "9" }).flushHeaders();
        answer.write("half");
        setTimeout(() => void socket.resetAndDestroy(), 10);
      };
      const { data } = await client.get<Readable>(a.origin);
      await expect(data.toArray()).rejects.toThrow();
      await until("the place is free", () => outcomes(world).length === 1);
      expect(outcomes(world)).toEqual(["neutral"]);
    }));

  it("of the fetch adapter does the same: read, cancelled, broken off", () =>
    play("fetch", async (world) => {
      const { client, limiter, a } = world;
      const body = openBody(a, 200);
      const read = await client.get<ReadableStream>(a.origin);
      expect(limiter.stats(a.key)?.inFlight).toBe(1);
      body().end("all of it");
      expect(await new Response(read.data).text()).toBe("all of it");
      const cancelled = await client.get<ReadableStream>(a.origin);
      await cancelled.data.cancel();
      a.answer = ({ socket }, answer) => {
        answer.writeHead(200, { "content-length": "9" }).flushHeaders();
        answer.write("half");
        setTimeout(() => void socket.resetAndDestroy(), 10);
      };
      const torn = await client.get<ReadableStream>(a.origin);
      await expect(new Response(torn.data).text()).rejects.toThrow();
      await until("the places are free", () => outcomes(world).length === 3);
      expect(outcomes(world)).toEqual(["neutral", "neutral", "neutral"]);
    }));

  it("gives its place back when bytes have waited 5 s for a reader, and not before there are any", async () => {
    const clock = new VirtualClock();
    const makeLimiter = (policy: PolicyInput): Limiter => politely(policy, { clock });
    const makeClient = (limiter: Limiter): AxiosInstance => politeAxios(axios.create(), limiter);
    await inHttpWorld({ makeLimiter, makeClient, policy }, async ({ client, limiter, a }) => {
      const body = openBody(a, 200);
      const { data } = await client.get<Readable>(a.origin, { responseType: "stream" });
      await clock.advance(9_000);
      expect(limiter.stats(a.key)?.inFlight).toBe(1);
      body().write("some");
      await until("bytes are there", () => data.readableLength > 0);
      await clock.advance(2_000);
      expect(limiter.stats(a.key)?.inFlight).toBe(0);
      body().end(" of it");
      expect((await data.setEncoding("utf8").toArray()).join("")).toBe("some of it");
    });
  });
});

function policy(a: string): PolicyInput {
  return { hosts: { [a]: { concurrency: 1, backoff: "none" } } };
}
