import { Agent } from "node:http";
import { connect } from "node:net";
import { Readable } from "node:stream";
import axios, { AxiosError, AxiosHeaders, type AxiosInstance, type AxiosRequestConfig } from "axios";
import { describe, expect, it } from "vitest";
import { type AxiosLike, politeAxios } from "../../../src/http/axios/index.js";
import { DeadlineError, limit, type PolicyInput, politely } from "../../../src/index.js";
import { type HttpWorld, inHttpWorld, openBody, reply, until } from "../../../src/testing/httpWorld.js";

type World = HttpWorld<AxiosInstance>;

/** Plays with a polite instance; both sites have one place unless the policy says otherwise. */
function play(run: (world: World) => Promise<void>, policy: PolicyInput = {}, config: AxiosRequestConfig = {}) {
  return inHttpWorld(
    {
      makeLimiter: politely,
      makeClient: (limiter) => politeAxios(axios.create(config), limiter),
      policy: (a, b) => ({ hosts: { [a]: { concurrency: 1 }, [b]: { concurrency: 1 } }, ...policy }),
    },
    run,
  );
}

const outcomes = ({ events }: World): string[] =>
  events.flatMap((event) => (event.type === "release" ? [event.outcome] : []));

const granted = ({ events }: World): string[] => events.flatMap(({ type, key }) => (type === "grant" ? [key] : []));

describe("politeAxios", () => {
  it("gives back the instance, and paces once however often the same limiter is given", () =>
    play(async (world) => {
      const { client, limiter, a } = world;
      expect(politeAxios(politeAxios(client, limiter), limiter)).toBe(client);
      const child = politeAxios(client.create({ baseURL: a.origin }), limiter);
      await client.get(`${a.origin}/1`);
      await child.get("/2", { adapter: "fetch" });
      await client.create().get(`${a.origin}/3`);
      expect(granted(world)).toEqual([a.key, a.key, a.key]);
    }));

  it("goes through each of two limiters", () =>
    play(async (world) => {
      const { client, a } = world;
      const key = limit({ concurrency: 1 });
      politeAxios(client, key);
      await client.get(a.origin);
      await client.get(a.origin, { adapter: "http" });
      expect(granted(world)).toEqual([a.key, a.key]);
      expect(key.stats()).toMatchObject({ totalRequests: 2, inFlight: 0 });
    }));

  it("needs a limiter", () => {
    expect(() => politeAxios(axios.create(), {} as never)).toThrow("politeAxios needs a limiter");
  });

  it("paces a request that names an adapter, and not one that brings its own", () =>
    play(async (world) => {
      const { client, a } = world;
      const named = await client.get<string>(a.origin, { adapter: ["xhr", "fetch"] });
      const own = await client.get<string>(a.origin, {
        adapter: async (config) => ({ data: "own", status: 200, statusText: "", headers: {}, config }),
      });
      expect([named.data, own.data]).toEqual(["/", "own"]);
      expect(granted(world)).toEqual([a.key]);
    }));

  it("finds the host of a relative URL, and sends base, parameters and body as they are", () =>
    play(async (world) => {
      const { client, a } = world;
      client.defaults.baseURL = `${a.origin}/api/`;
      const { data } = await client.post<string>("items", { x: 1 }, { params: { page: 2, tags: ["a", "b"] } });
      expect(data).toBe("/api/items?page=2&tags%5B%5D=a&tags%5B%5D=b");
      expect(a.requests[0].headers).toMatchObject({ "content-type": "application/json", "content-length": "7" });
      expect(granted(world)).toEqual([a.key]);
    }));

  it("leaves what is not fetched by HTTP alone", () =>
    play(async (world) => {
      expect((await world.client.get<string>("data:text/plain,hello", { responseType: "text" })).data).toBe("hello");
      await expect(world.client.get("/nowhere")).rejects.toMatchObject({ code: "ERR_INVALID_URL" });
      expect(granted(world)).toEqual([]);
    }));

  it("runs interceptors and transforms once, and shows them the caller's config", () =>
    play(async (world) => {
      const { client, a } = world;
      const seen: unknown[] = [];
      client.interceptors.request.use((config) => {
        config.headers.delete("Accept");
        seen.push(config.url);
        return config;
      });
      client.interceptors.response.use((response) => {
        seen.push(response.config.url, response.config.maxRedirects, response.config.transformResponse !== undefined);
        return response;
      });
      a.answer = (_request, answer) => reply(answer, 200, {}, '{"ok":true}');
      const { data } = await client.get<unknown>(a.origin);
      expect(data).toEqual({ ok: true });
      expect(seen).toEqual([a.origin, a.origin, undefined, true]);
      expect(a.requests[0].headers.accept).toBeUndefined();
    }));

  it("transforms what is sent and what is answered once", () =>
    play(async ({ client, a }) => {
      a.answer = ({ headers }, answer) => reply(answer, 200, {}, String(headers["content-length"]));
      const wrap = (data: unknown): string => `<${String(data)}>`;
      const { data } = await client.post<string>(a.origin, "abc", { transformRequest: wrap, transformResponse: wrap });
      expect(data).toBe("<5>");
    }));

  it("passes on axios' own error for a status, whose config can be sent again", () =>
    play(async (world) => {
      const { client, a } = world;
      a.answer = (_request, answer) => reply(answer, 404, {}, '{"why":"gone"}');
      const error: unknown = await client.get(a.origin).catch((caught: unknown) => caught);
      expect(error).toBeInstanceOf(AxiosError);
      expect(error).toMatchObject({ code: "ERR_BAD_REQUEST", status: 404, response: { data: { why: "gone" } } });
      const { config, response } = error as AxiosError;
      expect(response?.config).toBe(config);
      await expect(client.request({ ...config, validateStatus: null })).resolves.toMatchObject({ status: 404 });
      expect(granted(world)).toEqual([a.key, a.key]);
    }));

  it("cancels in the queue as axios does, by signal and by token", () =>
    play(async ({ client, limiter, a }) => {
      const body = openBody(a, 200);
      const first = client.get(a.origin);
      await until("the site was asked", () => a.requests.length === 1);
      const controller = new AbortController();
      const source = axios.CancelToken.source();
      const waiting = [
        client.get(a.origin, { signal: controller.signal }),
        client.get(a.origin, { cancelToken: source.token }),
        client.get(a.origin, { cancelToken: source.token, signal: new AbortController().signal }),
      ].map((request) => request.catch((error: unknown) => error));
      await until("three wait", () => limiter.stats(a.key)?.waiting === 3);
      controller.abort();
      source.cancel("enough");
      const errors = await Promise.all(waiting);
      expect(errors.map(axios.isCancel)).toEqual([true, true, true]);
      expect(errors[1]).toMatchObject({ message: "enough" });
      body().end();
      await first;
      expect(limiter.stats(a.key)).toMatchObject({ granted: 1, cancelled: 3 });
    }));

  it("leaves no listener at a token that outlives the request", () =>
    play(async ({ client, a }) => {
      const { token } = axios.CancelToken.source();
      const listeners = new Set<unknown>();
      const { subscribe, unsubscribe } = token;
      token.subscribe = (listener) => {
        listeners.add(listener);
        subscribe.call(token, listener);
      };
      token.unsubscribe = (listener) => {
        listeners.delete(listener);
        unsubscribe.call(token, listener);
      };
      await client.get(a.origin, { cancelToken: token });
      expect(listeners.size).toBe(0);
    }));

  it("throws the limiter's own errors as they are", () =>
    play(async ({ client, a }) => {
      const body = openBody(a, 200);
      const first = client.get(a.origin);
      await until("the site was asked", () => a.requests.length === 1);
      const config: object = { politely: { maxWait: 0 } };
      await expect(client.get(a.origin, config)).rejects.toBeInstanceOf(DeadlineError);
      body().end();
      await first;
    }));

  it.each(["http", "fetch"])(
    "blames the site neither for a body of ours that fails nor for one that is no gzip (%s)",
    (adapter) =>
      play(async (world) => {
        const { client, a } = world;
        a.answer = (_request, answer) => reply(answer, 200, { "content-encoding": "gzip" }, "no gzip");
        await expect(client.get(a.origin, { adapter })).rejects.toThrow();
        const data = Readable.from(
          (async function* () {
            yield Buffer.from("begin");
            throw new Error("no more");
          })(),
        );
        await expect(client.post(a.origin, data, { adapter })).rejects.toThrow();
        await until("the places are free", () => outcomes(world).length === 2);
        expect(outcomes(world)).toEqual(["neutral", "neutral"]);
      }),
  );

  it("counts a connection that never comes towards the timeout", () =>
    play(async ({ client, a, events }) => {
      const never = { host: "never.invalid", port: 1, lookup: () => undefined };
      const httpAgent = Object.assign(new Agent(), { createConnection: () => connect(never) });
      const answer = client.get(a.origin, { httpAgent, timeout: 40 });
      await expect(answer).rejects.toMatchObject({ code: "ECONNABORTED", message: "timeout of 40ms exceeded" });
      expect(events).toContainEqual(expect.objectContaining({ type: "release", outcome: "timeout" }));
    }));

  it("sends by the caller's transport and listens to it", () =>
    play(async ({ client, limiter, a }) => {
      const { request } = await import("node:http");
      let sent = 0;
      const transport = {
        request: (...args: Parameters<typeof request>) => {
          sent += 1;
          return request(...args);
        },
      };
      const body = openBody(a, 429, { "retry-after": "9" });
      const answer = client.get(a.origin, { transport, validateStatus: null });
      await until("the host cools down", () => (limiter.stats(a.key)?.cooldownMs ?? 0) > 0);
      body().end();
      expect(await answer).toMatchObject({ status: 429 });
      expect(sent).toBe(1);
    }));
});

describe("politeAxios with the fetch adapter", () => {
  it("gives axios' own error for a timeout, and the limiter's own as they are", () =>
    play(async ({ client, a }) => {
      openBody(a, undefined);
      const late = client.get(a.origin, { adapter: "fetch", timeout: 40 });
      const config: object = { adapter: "fetch", politely: { maxWait: 0 } };
      await until("the site was asked", () => a.requests.length === 1);
      await expect(client.get(a.origin, config)).rejects.toBeInstanceOf(DeadlineError);
      await expect(late).rejects.toBeInstanceOf(AxiosError);
      await expect(late).rejects.toMatchObject({ code: "ETIMEDOUT", message: "timeout of 40ms exceeded" });
    }));

  it("is refused by an axios that cannot be told what to send with", async () => {
    const adapter = "fetch";
    const old: AxiosLike = {
      defaults: { adapter },
      interceptors: { request: { use: () => undefined } },
      create: () => ({ ...old, defaults: {} }),
      request: async () => ({ status: 200, headers: {}, data: "unpaced" }),
      getUri: () => "http://127.0.0.2/",
    };
    const { defaults } = politeAxios(old, politely());
    const send = defaults.adapter as (config: object) => Promise<unknown>;
    await expect(send({ headers: new AxiosHeaders() })).rejects.toThrow("axios before 1.12");
  });
});

describe("politeAxios, where a hop waits", () => {
  it("ends the wait with the request, and throws what the limiter refuses", () =>
    play(async ({ client, limiter, a, b }) => {
      const body = openBody(b, 200);
      const first = client.get(b.origin);
      await until("the site was asked", () => b.requests.length === 1);
      a.answer = (_request, answer) => reply(answer, 302, { location: `${b.origin}/end` });
      const controller = new AbortController();
      const second = client.get(a.origin, { signal: controller.signal }).catch((error: unknown) => error);
      await until("the hop waits", () => limiter.stats(b.key)?.waiting === 1);
      controller.abort();
      expect(axios.isCancel(await second)).toBe(true);
      expect(limiter.stats(b.key)).toMatchObject({ waiting: 0, cancelled: 1 });
      const config: object = { politely: { maxWait: 0 } };
      await expect(client.get(a.origin, config)).rejects.toBeInstanceOf(DeadlineError);
      body().end();
      await first;
    }));

  it("paces what its agents do not see until axios has its answer", () =>
    play(async (world) => {
      const { client, a } = world;
      const { request } = await import("node:http");
      const transport = {
        request: (options: object, respond: () => void) => request({ ...options, agent: new Agent() }, respond),
      };
      const urls = ["/1", "/2"].map((path) => a.origin + path);
      const answers = await Promise.all(urls.map((url) => client.get<string>(url, { transport, maxRedirects: 0 })));
      expect(answers.map(({ data }) => data)).toEqual(["/1", "/2"]);
      const broken = {
        request: () => {
          throw new Error("no transport");
        },
      };
      await expect(client.get(a.origin, { transport: broken })).rejects.toThrow("no transport");
      expect([granted(world), outcomes(world)]).toEqual([
        [a.key, a.key, a.key],
        ["success", "success", "neutral"],
      ]);
    }));
});

describe("politeAxios with http.retry in the policy", () => {
  const policy: PolicyInput = { http: { retry: { attempts: 3, delay: 1, jitter: 0 } }, localhost: "limited" };
  const patient: PolicyInput = { ...policy, default: { concurrency: 1, backoff: "none" }, hosts: {} };

  it("sends a request again, through the limiter, until it is answered well", () =>
    play(async (world) => {
      const { client, a } = world;
      a.answer = ({ url }, answer) => reply(answer, a.requests.length < 3 ? 502 : 200, {}, url);
      expect((await client.get<string>(`${a.origin}/x`)).data).toBe("/x");
      expect(granted(world)).toHaveLength(3);
    }, patient));

  it("gives the last answer when nothing helps, as axios would have: an error, or a stream", () =>
    play(async (world) => {
      const { client, a } = world;
      a.answer = (_request, answer) => reply(answer, 500, {}, `try ${a.requests.length}`);
      await expect(client.get(a.origin)).rejects.toMatchObject({ status: 500, response: { data: "try 3" } });
      const { data } = await client.get<Readable>(a.origin, {
        responseType: "stream",
        validateStatus: null,
      });
      const chunks = await data.setEncoding("utf8").toArray();
      expect(chunks.join("")).toBe("try 6");
      expect(granted(world)).toHaveLength(6);
    }, patient));

  it("does not send a POST again, nor a body that is a stream", () =>
    play(async (world) => {
      const { client, a } = world;
      a.answer = (_request, answer) => reply(answer, 500);
      await expect(client.post(a.origin, "x")).rejects.toMatchObject({ status: 500 });
      const stream = { url: a.origin, method: "get", data: Readable.from(["x"]) };
      await expect(client.request(stream)).rejects.toMatchObject({ status: 500 });
      expect(granted(world)).toHaveLength(2);
    }, patient));

  it("sends again after a broken connection, and throws axios' error in the end", () =>
    play(async (world) => {
      const { client, b } = world;
      await b.close();
      await expect(client.get(b.origin)).rejects.toBeInstanceOf(AxiosError);
      expect(granted(world)).toHaveLength(3);
    }, patient));
});
