import { type IncomingMessage, request as nodeRequest, type ServerResponse } from "node:http";
import { Readable } from "node:stream";
import got, { CancelError, type Got, type Hooks, RequestError, TimeoutError } from "got";
import { describe, expect, it } from "vitest";
import { politeGot } from "../../../src/http/got/index.js";
import { DeadlineError, type Limiter, type Limits, limit, type PolicyInput, politely } from "../../../src/index.js";
import { type HttpWorld, inHttpWorld, openBody, pause, reply, until } from "../../../src/testing/httpWorld.js";
import { VirtualClock } from "../../../src/testing/virtualClock.js";

type World = HttpWorld<Got>;

function play(run: (world: World) => Promise<void>, limits: Limits = { concurrency: 1, backoff: "none" }) {
  return inHttpWorld(
    {
      makeLimiter: politely,
      makeClient: (limiter) => politeGot(got.extend({ retry: { limit: 0 } }), limiter),
      policy: (a, b) => ({ hosts: { [a]: limits, [b]: limits } }),
    },
    run,
  );
}

const granted = ({ events }: World): string[] => events.flatMap(({ type, key }) => (type === "grant" ? [key] : []));
const outcomes = ({ events }: World): string[] =>
  events.flatMap((event) => (event.type === "release" ? [event.outcome] : []));

describe("politeGot", () => {
  it("leaves the given instance alone, and what is made of the polite one is polite", () =>
    play(async (world) => {
      const { client, a } = world;
      await got(a.origin);
      const child = client.extend({ prefixUrl: a.origin });
      expect(await child("child").text()).toBe("/child");
      expect((await client.post(a.origin, { json: { x: 1 } })).statusCode).toBe(200);
      expect(granted(world)).toEqual([a.key, a.key]);
    }));

  it("paces once however often the same limiter is given, and by each of two limiters", () =>
    play(async (world) => {
      const { client, limiter, a } = world;
      const key = limit({ concurrency: 1 });
      await politeGot(politeGot(client, limiter), key)(a.origin);
      expect(granted(world)).toEqual([a.key]);
      expect(key.stats()).toMatchObject({ totalRequests: 1, inFlight: 0 });
    }));

  it("needs a limiter, and keeps defaults that may change", () => {
    expect(() => politeGot(got, {} as never)).toThrow("politeGot needs a limiter");
    const polite = politeGot(got.extend({ mutableDefaults: true }), politely());
    polite.defaults.options.headers["x-token"] = "new";
    expect(polite.defaults.options.headers["x-token"]).toBe("new");
  });

  it("lets got refuse wrong options itself", () =>
    play(async ({ client }) => {
      await expect(client("nonsense")).rejects.toMatchObject({ code: "ERR_INVALID_URL" });
      await expect(client("http://x.org", { timeout: "soon" as never })).rejects.toBeInstanceOf(RequestError);
    }));

  it("paces each of got's own retries", () =>
    play(async (world) => {
      const { client, a } = world;
      a.answer = ({ url }, answer) => reply(answer, a.requests.length < 3 ? 503 : 200, {}, url);
      const retry = {
        limit: 2,
        calculateDelay: ({ attemptCount }: { attemptCount: number }) => (attemptCount < 3 ? 1 : 0),
      };
      expect(await client(`${a.origin}/again`, { retry }).text()).toBe("/again");
      expect(granted(world)).toHaveLength(3);
    }));

  it("reports a refusal of the limiter as got reports failures", () =>
    play(async ({ client, a }) => {
      const body = openBody(a, 200);
      const first = client(a.origin);
      await until("the site was asked", () => a.requests.length === 1);
      const error: unknown = await client(a.origin, { context: { politely: { maxWait: 0 } } }).catch(
        (caught: unknown) => caught,
      );
      expect(error).toBeInstanceOf(RequestError);
      expect(error).toMatchObject({ code: "POLITELY_DEADLINE", cause: expect.any(DeadlineError) });
      body().end();
      await first;
    }));

  it("leaves the queue when it is cancelled", () =>
    play(async ({ client, limiter, a }) => {
      const body = openBody(a, 200);
      const first = client(a.origin);
      await until("the site was asked", () => a.requests.length === 1);
      const second = client(a.origin);
      const third = client.stream(a.origin);
      const fourth = client(a.origin);
      await until("three wait", () => limiter.stats(a.key)?.waiting === 3);
      second.cancel();
      third.destroy();
      await expect(second).rejects.toBeInstanceOf(CancelError);
      await until("one waits", () => limiter.stats(a.key)?.waiting === 1);
      a.answer = (_request, answer) => reply(answer, 200);
      body().end();
      await Promise.all([first, fourth]);
      expect(limiter.stats(a.key)).toMatchObject({ granted: 2, cancelled: 2 });
    }));

  it("frees its place when it is cancelled in flight, which is not the site's fault", () =>
    play(async (world) => {
      const { client, a } = world;
      for (const status of [undefined, 200]) {
        openBody(a, status);
        const seen = a.requests.length;
        const request = client(a.origin);
        await until("the site was asked", () => a.requests.length === seen + 1);
        await pause(10);
        request.cancel();
        await expect(request).rejects.toBeInstanceOf(CancelError);
        await until("the place is free", () => outcomes(world).length === seen + 1);
      }
      expect(outcomes(world)).toEqual(["neutral", "neutral"]);
    }));

  it("throws got's own TimeoutError", () =>
    play(async (world) => {
      const { client, a } = world;
      openBody(a, undefined);
      await expect(client(a.origin, { timeout: { request: 30 } })).rejects.toBeInstanceOf(TimeoutError);
      openBody(a, 200);
      await expect(client(a.origin, { timeout: { read: 30 } })).rejects.toBeInstanceOf(TimeoutError);
      expect(outcomes(world)).toEqual(["timeout", "neutral"]);
    }));

  it("takes nothing for an answer from got's cache, and counts one that asks the site whether it is fresh", () =>
    play(async (world) => {
      const { client, a } = world;
      a.answer = ({ url, headers }, answer) => {
        const maxAge = url === "/fresh" ? "60" : "0";
        reply(
          answer,
          headers["if-none-match"] === '"1"' ? 304 : 200,
          { etag: '"1"', "cache-control": `max-age=${maxAge}` },
          url,
        );
      };
      const cached = client.extend({ cache: new Map() });
      for (const path of ["/fresh", "/stale"]) {
        await cached(a.origin + path);
        const { isFromCache, body } = await cached(a.origin + path);
        expect([isFromCache, body]).toEqual([true, path]);
      }
      expect(a.requests.map(({ url }) => url)).toEqual(["/fresh", "/stale", "/stale"]);
      expect(granted(world)).toHaveLength(3);
    }));

  it("takes nothing for what a hook answers", () =>
    play(async (world) => {
      const { client, a } = world;
      const { default: ResponseLike } = await import("responselike");
      const answer = () => new ResponseLike({ statusCode: 200, headers: {}, body: Buffer.from("hook"), url: a.origin });
      const { body } = await client(a.origin, { hooks: { beforeRequest: [answer] } });
      expect(body).toBe("hook");
      expect(granted(world)).toEqual([]);
    }));

  it("sends with the caller's request function", () =>
    play(async (world) => {
      const { client, a } = world;
      let sent = 0;
      const request = (...args: Parameters<typeof nodeRequest>) => {
        sent += 1;
        return nodeRequest(...args);
      };
      expect(await client(`${a.origin}/own`, { request }).text()).toBe("/own");
      expect([sent, granted(world).length]).toEqual([1, 1]);
    }));

  it("paces where a hook sets or takes away the request function, as got-scraping's does", () =>
    play(async (world) => {
      const { limiter, a } = world;
      let sent = 0;
      const request = (...args: Parameters<typeof nodeRequest>) => {
        sent += 1;
        return nodeRequest(...args);
      };
      for (const own of [request, undefined]) {
        const hooks: Partial<Hooks> = {
          beforeRequest: [
            (options) => {
              options.request = own;
            },
          ],
        };
        a.answer = ({ url }, answer) => reply(answer, url === "/end" ? 200 : 302, { location: "/end" }, url);
        expect(await politeGot(got.extend({ hooks }), limiter)(`${a.origin}/own`).text()).toBe("/end");
        expect(await politeGot(got, limiter)(`${a.origin}/own`, { hooks }).text()).toBe("/end");
      }
      expect([sent, granted(world).length]).toEqual([4, 8]);
    }));

  it("paces each page of a listing once", () =>
    play(async (world) => {
      const { client, a } = world;
      a.answer = ({ url }, answer) => reply(answer, 200, {}, JSON.stringify([url]));
      const pages = await client.paginate.all<string>(`${a.origin}/1`, {
        responseType: "json",
        pagination: {
          transform: (response) => response.body as string[],
          paginate: ({ response }) => {
            if (response.url.endsWith("/3")) return false;
            const { options } = response.request;
            options.url = new URL(`/${Number(response.url.slice(-1)) + 1}`, a.origin);
            return options;
          },
        },
      });
      expect(pages).toEqual(["/1", "/2", "/3"]);
      expect(granted(world)).toHaveLength(3);
    }));

  it("follows a redirect to another protocol by that protocol", () =>
    play(async (world) => {
      const { client, a, b } = world;
      a.answer = (_request, answer) => reply(answer, 302, { location: b.origin.replace("http:", "https:") });
      // There is no TLS at the other end, and only somebody who tries TLS finds that out.
      await expect(client(a.origin)).rejects.toMatchObject({ code: expect.stringMatching(/EPROTO|ERR_SSL/) });
      expect(outcomes(world)).toEqual(["neutral", "server_error"]);
    }));

  it.each([
    ["a redirect", 302, true],
    ["one that a function follows", 307, () => true],
    ["a choice that got follows", 300, true],
  ])("does not wait for the body of %s", (_name, status, followRedirect) =>
    play(async ({ client, a }) => {
      a.answer = ({ url }, answer) => {
        if (url === "/end") reply(answer, 200, {}, "end");
        else answer.writeHead(status, { location: "/end" }).flushHeaders();
      };
      expect(await client(`${a.origin}/start`, { followRedirect }).text()).toBe("end");
    }),
  );

  it.each([
    ["", false],
    [", as a function says", () => false],
  ])("keeps the place of a redirect that it does not follow until the last byte%s", (_name, followRedirect) =>
    play(async ({ client, limiter, a }) => {
      const body = openBody(a, 302, { location: "/end" });
      const answer = client(a.origin, { followRedirect });
      await until("the headers are there", () => a.requests.length === 1);
      await pause(20);
      expect(limiter.stats(a.key)?.inFlight).toBe(1);
      body().end("moved");
      expect(await answer).toMatchObject({ statusCode: 302, body: "moved" });
      await until("the place is free", () => limiter.stats(a.key)?.inFlight === 0);
    }),
  );
});

describe("a stream of politeGot", () => {
  it("keeps its place until it is read to its end", () =>
    play(async ({ client, limiter, a }) => {
      const stream = client.stream(`${a.origin}/body`);
      await new Promise((resolve) => stream.once("response", resolve));
      expect(limiter.stats(a.key)?.inFlight).toBe(1);
      expect((await stream.setEncoding("utf8").toArray()).join("")).toBe("/body");
      await until("the place is free", () => limiter.stats(a.key)?.inFlight === 0);
    }));

  it("takes a body that is piped into it before its turn", () =>
    play(async ({ client, limiter, a }) => {
      limiter.pause(a.key, 30);
      a.answer = (request, answer) => void (request as IncomingMessage).pipe(answer as ServerResponse);
      const echoed = Readable.from(["some ", "bytes"]).pipe(client.stream.post(a.origin));
      expect((await echoed.setEncoding("utf8").toArray()).join("")).toBe("some bytes");
    }));

  it("is judged by its status when it breaks off", () =>
    play(async (world) => {
      const { client, a } = world;
      a.answer = ({ socket }, answer) => {
        answer.writeHead(200, { "content-length": "9" }).flushHeaders();
        answer.write("half");
        setTimeout(() => void socket.destroy(), 10);
      };
      await expect(client.stream(a.origin).toArray()).rejects.toThrow();
      await until("the place is free", () => outcomes(world).length === 1);
      expect(outcomes(world)).toEqual(["neutral"]);
    }));

  it("frees its place when it is destroyed", () =>
    play(async (world) => {
      const { client, a } = world;
      openBody(a, 200);
      const stream = client.stream(a.origin);
      await new Promise((resolve) => stream.once("response", resolve));
      stream.destroy();
      await until("the place is free", () => outcomes(world).length === 1);
      expect(outcomes(world)).toEqual(["neutral"]);
    }));

  it("gives its place back when nobody has begun to read it for 5 s", async () => {
    const clock = new VirtualClock();
    const makeLimiter = (policy: PolicyInput): Limiter => politely(policy, { clock });
    const makeClient = (limiter: Limiter): Got => politeGot(got, limiter);
    const policy = (a: string): PolicyInput => ({ hosts: { [a]: { concurrency: 1 } } });
    await inHttpWorld({ makeLimiter, makeClient, policy }, async ({ client, limiter, a }) => {
      const text = "x".repeat(300_000);
      a.answer = (_request, answer) => reply(answer, 200, {}, text);
      const stream = client.stream(a.origin);
      await new Promise((resolve) => stream.once("response", resolve));
      await pause(20);
      await clock.advance(4_999);
      expect(limiter.stats(a.key)?.inFlight).toBe(1);
      await clock.advance(2_000);
      expect(limiter.stats(a.key)?.inFlight).toBe(0);
      expect((await stream.setEncoding("utf8").toArray()).join("")).toBe(text);
    });
  });

  it("is paced again when it is retried", () =>
    play(async (world) => {
      const { client, a } = world;
      a.answer = ({ url }, answer) => reply(answer, a.requests.length < 2 ? 503 : 200, {}, url);
      const text = await new Promise<string>((resolve, reject) => {
        const read = (stream: ReturnType<Got["stream"]>): void => {
          stream.once("retry", (_count: number, _error: unknown, retry: () => typeof stream) => read(retry()));
          stream.once("error", reject);
          stream.once("response", () => {
            stream
              .setEncoding("utf8")
              .toArray()
              .then((chunks) => resolve(chunks.join("")), reject);
          });
        };
        read(
          client.stream(`${a.origin}/again`, {
            retry: { limit: 1, calculateDelay: ({ computedValue }) => computedValue && 1 },
          }),
        );
      });
      expect(text).toBe("/again");
      expect(granted(world)).toHaveLength(2);
    }));
});
