import ky, { HTTPError, type KyInstance, TimeoutError } from "ky";
import { describe, expect, it } from "vitest";
import { politeKy } from "../../../src/http/ky/index.js";
import { DeadlineError, type PolicyInput, politely } from "../../../src/index.js";
import { type HttpWorld, inHttpWorld, openBody, reply, until } from "../../../src/testing/httpWorld.js";

type World = HttpWorld<KyInstance>;

function play(run: (world: World) => Promise<void>, http: PolicyInput["http"] = {}) {
  const limits = { concurrency: 1, backoff: "none" } as const;
  return inHttpWorld(
    {
      makeLimiter: politely,
      makeClient: (limiter) => politeKy(ky.create({ retry: { limit: 2, delay: () => 1 } }), limiter),
      policy: (a, b) => ({ hosts: { [a]: limits, [b]: limits }, http }),
    },
    run,
  );
}

const granted = ({ events }: World): string[] => events.flatMap(({ type, key }) => (type === "grant" ? [key] : []));
const outcomes = ({ events }: World): string[] =>
  events.flatMap((event) => (event.type === "release" ? [event.outcome] : []));

describe("politeKy", () => {
  it("paces calls, shortcuts and instances made of it, and leaves the given instance alone", () =>
    play(async (world) => {
      const { client, a } = world;
      await ky.get(a.origin).text();
      expect(await client(`${a.origin}/1`).text()).toBe("/1");
      expect(await client.post(`${a.origin}/2`, { json: { x: 1 } }).text()).toBe("/2");
      expect(await client.extend({ prefixUrl: a.origin }).get("3").text()).toBe("/3");
      expect(await client.create().get(`${a.origin}/4`).text()).toBe("/4");
      expect(a.requests.map(({ method }) => method)).toEqual(["GET", "GET", "POST", "GET", "GET"]);
      expect(granted(world)).toHaveLength(4);
      expect([client.stop, client.retry]).toEqual([ky.stop, ky.retry]);
    }));

  it("paces once however often the same limiter is given", () =>
    play(async (world) => {
      const { client, limiter, a } = world;
      expect(politeKy(client, limiter)).toBe(client);
      await politeKy(client.extend({ timeout: 900 }), limiter)
        .get(a.origin)
        .text();
      expect(granted(world)).toEqual([a.key]);
    }));

  it("needs a limiter, and lets ky refuse wrong options itself", () =>
    play(async ({ client, a }) => {
      expect(() => politeKy(ky, {} as never)).toThrow("politeKy needs a limiter");
      expect(() => client.get(a.origin, "options" as never)).toThrow("must be an object");
      await expect(client.get(a.origin, { timeout: 2 ** 31 })).rejects.toBeInstanceOf(RangeError);
    }));

  it("paces each of ky's own retries, and adds none of the policy", () =>
    play(
      async (world) => {
        const { client, a } = world;
        a.answer = ({ url }, answer) => reply(answer, a.requests.length < 3 ? 503 : 500, {}, url);
        await expect(client.get(a.origin)).rejects.toBeInstanceOf(HTTPError);
        await expect(client.get(a.origin, { retry: 0 })).rejects.toMatchObject({ response: { status: 500 } });
        expect(granted(world)).toHaveLength(4);
      },
      { retry: { attempts: 5, delay: 1 } },
    ));

  it("does not let ky retry what the limiter refuses", () =>
    play(async ({ client, limiter, a }) => {
      const body = openBody(a, 200);
      const first = client.get(a.origin).text();
      await until("the site was asked", () => a.requests.length === 1);
      const asked: unknown[] = [];
      const refused = client.get(a.origin, {
        context: { politely: { maxWait: 0 } },
        retry: { shouldRetry: ({ error }) => void asked.push(error) },
      });
      await expect(refused).rejects.toBeInstanceOf(DeadlineError);
      body().end();
      await first;
      expect(limiter.stats(a.key)).toMatchObject({ asked: 2, refused: 1 });
      expect(asked).toEqual([]);
    }));

  it("asks the caller's own shouldRetry about everything else", () =>
    play(async (world) => {
      const { client, a } = world;
      a.answer = (_request, answer) => reply(answer, 503);
      const shouldRetry = ({ retryCount }: { retryCount: number }): boolean => retryCount < 2;
      await expect(client.get(a.origin, { retry: { limit: 9, shouldRetry } })).rejects.toBeInstanceOf(HTTPError);
      expect(granted(world)).toHaveLength(2);
    }));

  it("throws ky's own TimeoutError, and retries it where ky would", () =>
    play(async (world) => {
      const { client, a } = world;
      openBody(a, undefined);
      const error: unknown = await client.get(`${a.origin}/late`, { timeout: 30 }).catch((caught: unknown) => caught);
      expect(error).toBeInstanceOf(TimeoutError);
      expect(error).toMatchObject({ request: { url: `${a.origin}/late`, method: "GET" } });
      const retry = { limit: 1, delay: () => 1, retryOnTimeout: true };
      await expect(client.post(a.origin, { timeout: 30, retry: { ...retry, methods: ["post"] } })).rejects.toThrow(
        "POST",
      );
      expect(outcomes(world)).toEqual(["timeout", "timeout", "timeout"]);
    }));

  it("takes the timeout of the instance, does not count the body, and can still be aborted there", () =>
    play(async ({ client, a }) => {
      const body = openBody(a, 200);
      const quick = client.extend({ timeout: 250 });
      const response = await quick.get(a.origin);
      setTimeout(() => body().end("late"), 300);
      expect(await response.text()).toBe("late");
      const controller = new AbortController();
      const aborted = await quick.get(a.origin, { signal: controller.signal });
      const text = aborted.text();
      controller.abort();
      await expect(text).rejects.toMatchObject({ name: "AbortError" });
      openBody(a, undefined);
      const startedMs = performance.now();
      await expect(quick.get(a.origin)).rejects.toBeInstanceOf(TimeoutError);
      expect(performance.now() - startedMs).toBeLessThan(5_000);
    }));

  it("gives up on a fetch that ignores its signal, too", () =>
    play(async (world) => {
      const signals: unknown[] = [];
      const fetch = (_input: unknown, init?: RequestInit): Promise<Response> => {
        signals.push(init?.signal);
        return new Promise(() => undefined);
      };
      await expect(world.client.get(world.a.origin, { fetch, timeout: 20 })).rejects.toBeInstanceOf(TimeoutError);
      expect(signals).toMatchObject([{ aborted: true, reason: expect.any(TimeoutError) }]);
      expect(outcomes(world)).toEqual(["timeout"]);
    }));

  it("sends by the caller's fetch, after the hooks of the caller", () =>
    play(async (world) => {
      const { client, a } = world;
      const own = client.extend({
        hooks: { beforeRequest: [(request) => new Request(`${a.origin}/hook`, request)] },
        fetch: async (input, init) => {
          const response = await fetch(input, init);
          return new Response(`own ${await response.text()}`, response);
        },
      });
      expect(await own.get(`${a.origin}/plain`).text()).toBe("own /hook");
      const hooks = { beforeRequest: [() => new Response("hook only")] };
      expect(await client.get(a.origin, { hooks }).text()).toBe("hook only");
      expect(granted(world)).toEqual([a.key]);
    }));

  it("frees its place after hooks that look at the answer, progress that is watched, and an error nobody reads", () =>
    play(async ({ client, a }) => {
      const seen: unknown[] = [];
      const hooks = {
        afterResponse: [
          async (_request: Request, _options: unknown, response: Response) => void seen.push(await response.text()),
        ],
      };
      expect(await client.get(`${a.origin}/1`, { hooks }).text()).toBe("/1");
      const onDownloadProgress = ({ percent }: { percent: number }): void => void seen.push(percent);
      expect(await client.get(`${a.origin}/2`, { onDownloadProgress }).text()).toBe("/2");
      a.answer = (_request, answer) => reply(answer, 404, {}, "unread");
      await expect(client.get(a.origin)).rejects.toBeInstanceOf(HTTPError);
      expect(seen).toContain("/1");
      expect(seen).toContain(1);
    }));
});
