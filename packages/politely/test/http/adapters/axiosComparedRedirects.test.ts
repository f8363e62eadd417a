import type { IncomingMessage } from "node:http";
import axios, { AxiosError, type AxiosInstance, type AxiosRequestConfig } from "axios";
import { describe, expect, it } from "vitest";
import { politeAxios } from "../../../src/http/axios/index.js";
import { politely } from "../../../src/index.js";
import { type HttpWorld, inHttpWorld, reply, type Site } from "../../../src/testing/httpWorld.js";
import type { ServedRequest } from "../../../src/testing/nodeServer.js";

type World = HttpWorld<AxiosInstance>;

const STATUSES = [300, 301, 302, 303, 304, 305, 306, 307, 308, 399];
const METHODS = ["GET", "HEAD", "POST", "PUT", "DELETE"];
const HEADERS = {
  authorization: "Bearer 1",
  cookie: "a=1",
  "content-type": "text/plain",
  "content-md5": "x",
  "x-own": "1",
};

function play(adapter: "http" | "fetch", run: (world: World) => Promise<void>) {
  return inHttpWorld(
    {
      makeLimiter: politely,
      makeClient: (limiter) => politeAxios(axios.create({ adapter }), limiter),
      policy: (a, b) => ({ hosts: { [a]: { concurrency: 1 }, [b]: { concurrency: 1 } } }),
    },
    run,
  );
}

/** Lets a site redirect everything but /end, which tells the body that it got. */
function redirectAll(site: Site, status: number, location: string): void {
  site.answer = (request, answer) =>
    request.url?.startsWith("/end") ? echo(request, answer) : reply(answer, status, { location }, "moved");
}

const echo: Site["answer"] = (request, answer) => {
  let text = "";
  (request as unknown as IncomingMessage)
    .on("data", (chunk: Buffer) => {
      text += chunk.toString();
    })
    .on("end", () => reply(answer, 200, { "x-method": request.method ?? "" }, text));
};

/** What the caller and both sites get to see of one call. */
async function record(client: AxiosInstance, { a, b }: World, config: AxiosRequestConfig): Promise<unknown> {
  a.requests.length = 0;
  b.requests.length = 0;
  const result = await client.request<string>({ url: `${a.origin}/start`, ...config }).then(
    ({ status, data, headers }) => ({ status, data, method: headers["x-method"] as unknown }),
    (error: unknown) => said(error),
  );
  return { result, a: a.requests.map(seen), b: b.requests.map(seen) };
}

function said(error: unknown): unknown {
  if (!(error instanceof AxiosError)) return error;
  const { name, code, status, response } = error;
  return { name, code, status, data: response?.data as unknown, cause: codesOf(error.cause) };
}

/** Names and codes of an error and of its cause; what is behind that is the own affair of each. */
function codesOf(error: unknown): unknown {
  if (!(error instanceof Error)) return undefined;
  const { name, code, cause } = error as AxiosError;
  return { name, code, hasCause: cause !== undefined };
}

function seen({ method, url, headers }: ServedRequest): unknown {
  const { host: _host, connection: _connection, ...others } = headers;
  return { method, url, headers: others };
}

describe.each(["http", "fetch"] as const)("politeAxios with the %s adapter", (adapter) => {
  it.each(STATUSES)("does with status %i and a location what axios does", (status) =>
    play(adapter, async (world) => {
      const plain = axios.create({ adapter });
      for (const site of [world.a, world.b]) {
        redirectAll(world.a, status, `${site.origin}/end`);
        redirectAll(world.b, status, `${site.origin}/end`);
        for (const method of METHODS) {
          const config = { method, headers: HEADERS, data: method === "GET" || method === "HEAD" ? undefined : "body" };
          const expected = await record(plain, world, config);
          expect.soft(await record(world.client, world, config), `${method} to ${site.key}`).toEqual(expected);
        }
      }
    }),
  );
});

describe("politeAxios, where a location has a user name and a password,", () => {
  const withUser = (origin: string): string => origin.replace("//", "//other:secret@");

  it.each<AxiosRequestConfig>([{}, { auth: { username: "me", password: "mine" } }])(
    "sends of them what axios does, with %o",
    (config) =>
      play("http", async (world) => {
        for (const site of [world.a, world.b]) {
          redirectAll(world.a, 302, `${withUser(site.origin)}/end`);
          const expected = await record(axios.create(), world, config);
          expect.soft(await record(world.client, world, config), `to ${site.key}`).toEqual(expected);
        }
      }),
  );

  it("does not follow it with the fetch adapter, as axios does not, and does not tell the password", () =>
    play("fetch", async ({ client, a }) => {
      redirectAll(a, 302, `${withUser(a.origin)}/end`);
      for (const each of [axios.create({ adapter: "fetch" }), client]) {
        const error: unknown = await each.get(`${a.origin}/start`).catch((caught: unknown) => caught);
        expect(error).toBeInstanceOf(AxiosError);
        expect(String(error)).not.toContain("secret");
      }
      expect(a.requests.map(({ url }) => url)).toEqual(["/start", "/start"]);
    }));
});

describe("politeAxios, where a redirect cannot be followed,", () => {
  const stop = (): never => {
    throw new Error("not there");
  };

  it.each<[string, AxiosRequestConfig]>([
    ["http://[bad", {}],
    ["http://127.0.0.2:99999/", {}],
    ["file:///etc/passwd", {}],
    ["/again", {}],
    ["/again", { maxRedirects: 3 }],
    ["/end", { beforeRedirect: stop }],
    ["", {}],
    ["", { validateStatus: null }],
  ])("does what axios does when it leads to '%s', with %o", (location, config) =>
    play("http", async (world) => {
      for (const status of [300, 302]) {
        redirectAll(world.a, status, location);
        const expected = await record(axios.create(), world, config);
        expect.soft(await record(world.client, world, config), `status ${status}`).toEqual(expected);
      }
    }),
  );

  it("keeps what was thrown, with the config that was given", () =>
    play("http", async ({ client, a }) => {
      redirectAll(a, 302, "http://[bad");
      const error: unknown = await client.get(`${a.origin}/start`).catch((caught: unknown) => caught);
      expect(error).toBeInstanceOf(AxiosError);
      expect(error).toMatchObject({
        code: "ERR_FR_REDIRECTION_FAILURE",
        config: { url: `${a.origin}/start` },
        cause: { code: "ERR_FR_REDIRECTION_FAILURE", cause: { code: "ERR_INVALID_URL" } },
      });
      redirectAll(a, 302, "/end");
      const own = new Error("not there");
      const beforeRedirect = (): never => {
        throw own;
      };
      const stopped: unknown = await client
        .get(`${a.origin}/start`, { beforeRedirect })
        .catch((caught: unknown) => caught);
      expect(stopped).toMatchObject({
        code: "ERR_FR_REDIRECTION_FAILURE",
        message: "Redirected request failed: not there",
      });
      expect(((stopped as AxiosError).cause as Error).cause).toBe(own);
    }));

  it("says why with the fetch adapter, in the cause of axios' own error", () =>
    play("fetch", async ({ client, a }) => {
      redirectAll(a, 302, "http://[bad");
      const error: unknown = await client.get(`${a.origin}/start`).catch((caught: unknown) => caught);
      expect(error).toBeInstanceOf(AxiosError);
      // What the platform's fetch says of it, which follows redirects by itself.
      expect(error).toMatchObject({ code: "ERR_NETWORK", config: { url: `${a.origin}/start` } });
      expect((error as AxiosError).cause).toMatchObject({ message: expect.stringMatching(/URL|redirect/i) as string });
    }));

  it("asks once only, though the policy repeats what failed", () =>
    inHttpWorld(
      {
        makeLimiter: politely,
        makeClient: (limiter) => politeAxios(axios.create(), limiter),
        policy: (a) => ({ hosts: { [a]: { concurrency: 1 } }, http: { retry: { attempts: 3 } } }),
      },
      async ({ client, a }) => {
        redirectAll(a, 302, "http://[bad");
        await expect(client.get(`${a.origin}/start`)).rejects.toMatchObject({ code: "ERR_FR_REDIRECTION_FAILURE" });
        expect(a.requests).toHaveLength(1);
      },
    ));

  it.each([300, 302])("fails when the wanted body of a %i without a location breaks off", (status) =>
    play("http", async (world) => {
      world.a.answer = (request, answer) => {
        answer.writeHead(status, { "content-length": "100" });
        answer.write("half");
        (request as unknown as IncomingMessage).socket.end();
      };
      const config = { validateStatus: null };
      const expected = await record(axios.create(), world, config);
      expect(expected).toHaveProperty("result.code");
      expect(await record(world.client, world, config)).toEqual(expected);
    }),
  );
});
