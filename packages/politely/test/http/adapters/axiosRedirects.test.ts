import type { ServerResponse } from "node:http";
import { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import axios, { AxiosError, type AxiosInstance } from "axios";
import { describe, expect, it } from "vitest";

import { politeAxios } from "../../../src/http/axios/index.js";
import { politely } from "../../../src/index.js";
import { type HttpWorld, inHttpWorld, reply, type Site, until } from "../../../src/testing/httpWorld.js";

function play(run: (world: HttpWorld<AxiosInstance>) => Promise<void>) {
  return inHttpWorld(
    {
      makeLimiter: politely,
      makeClient: (limiter) => politeAxios(axios.create(), limiter),
      policy: (a, b) => ({ hosts: { [a]: { concurrency: 1 }, [b]: { concurrency: 1 } } }),
    },
    run,
  );
}

/** Lets a site redirect everything but /end. */
function redirectAll(site: Site, location: string, status = 302): void {
  site.answer = ({ url }, answer) =>
    url?.startsWith("/end") ? reply(answer, 200, {}, url) : reply(answer, status, { location });
}

describe("politeAxios following redirects", () => {
  it("follows up to 21 by default, and then fails as axios does", () =>
    play(async ({ client, a }) => {
      a.answer = ({ url = "" }, answer) => reply(answer, 302, { location: `/${Number(url.slice(1)) + 1}` });
      const error: unknown = await client.get(`${a.origin}/0`).catch((caught: unknown) => caught);
      expect(error).toBeInstanceOf(AxiosError);
      expect(error).toMatchObject({
        code: "ERR_FR_TOO_MANY_REDIRECTS",
        message: "Maximum number of redirects exceeded",
        config: { url: `${a.origin}/0` },
      });
      expect(a.requests).toHaveLength(22);
    }));

  it("follows as many as the caller allows, and none with 0", () =>
    play(async ({ client, a }) => {
      redirectAll(a, "/end");
      await expect(client.get(`${a.origin}/start`, { maxRedirects: 1 })).resolves.toMatchObject({ data: "/end" });
      await expect(client.get(`${a.origin}/start`, { maxRedirects: 0 })).rejects.toMatchObject({ status: 302 });
      const wanted = client.get(`${a.origin}/start`, { maxRedirects: 0, validateStatus: null });
      await expect(wanted).resolves.toMatchObject({ status: 302, headers: { location: "/end" } });
    }));

  it("leaves it to validateStatus whether a redirect that leads nowhere is wanted", () =>
    play(async ({ client, a }) => {
      a.answer = (_request, answer) => reply(answer, 302, {}, "here");
      await expect(client.get(a.origin)).rejects.toMatchObject({ status: 302, response: { data: "here" } });
      await expect(client.get(a.origin, { validateStatus: null })).resolves.toMatchObject({ data: "here" });
    }));

  it("follows also where validateStatus accepts everything, and a stream is wanted", () =>
    play(async ({ client, a }) => {
      redirectAll(a, "/end");
      const { data } = await client.get<Readable>(`${a.origin}/start`, {
        validateStatus: null,
        responseType: "stream",
      });
      expect((await data.setEncoding("utf8").toArray()).join("")).toBe("/end");
    }));

  it("says where the last hop was, and keeps parameters to the first", () =>
    play(async ({ client, a, b }) => {
      redirectAll(a, `${b.origin}/end`);
      const { data, request } = await client.get<string>(a.origin, { params: { q: 1 } });
      expect(data).toBe("/end");
      expect(request).toMatchObject({ res: { responseUrl: `${b.origin}/end` } });
    }));

  it("leaves the caller's config as it is, and a base URL to the first hop", () =>
    play(async ({ client, a, b }) => {
      redirectAll(a, `${b.origin}/end`);
      const headers = { Authorization: "Bearer 1" };
      const { data, config } = await client.get<string>("/start", {
        baseURL: a.origin,
        allowAbsoluteUrls: false,
        headers,
      });
      expect(data).toBe("/end");
      expect(config).toMatchObject({ url: "/start", baseURL: a.origin, method: "get" });
      expect(config.headers.get("Authorization")).toBe("Bearer 1");
      expect(config.maxRedirects).toBeUndefined();
    }));

  it("drops the stream of a redirect instead of keeping its connection", () =>
    play(async ({ client, a, b }) => {
      let isClosed = false;
      a.answer = (_request, answer) => {
        (answer as ServerResponse).once("close", () => {
          isClosed = true;
        });
        answer.writeHead(302, { location: `${b.origin}/end` }).flushHeaders();
      };
      const { data } = await client.get<Readable>(a.origin, { responseType: "stream" });
      await until("the first connection is closed", () => isClosed);
      expect((await data.setEncoding("utf8").toArray()).join("")).toBe("/end");
    }));

  it("keeps basic credentials to their origin, from the config and from the URL", () =>
    play(async ({ client, a, b }) => {
      const expected = `Basic ${btoa("me:se:cret")}`;
      const auth = { username: "me", password: "se:cret" };
      const withUrl = (origin: string): string => origin.replace("//", "//me:se%3Acret@");
      for (const send of [
        (origin: string) => client.get(`${origin}/start`, { auth }),
        (origin: string) => client.get(`${withUrl(origin)}/start`),
      ]) {
        redirectAll(a, `${a.origin}/end`);
        await send(a.origin);
        redirectAll(a, `${b.origin}/end`);
        await send(a.origin);
      }
      expect(a.requests.map(({ headers }) => headers.authorization)).toEqual(Array(6).fill(expected));
      expect(b.requests.map(({ headers }) => headers.authorization)).toEqual([undefined, undefined]);
    }));

  it("drops what sensitiveHeaders names at another origin only", () =>
    play(async ({ client, a, b }) => {
      redirectAll(a, `${b.origin}/end`);
      const config = { headers: { "X-Api-Key": "1", "X-Other": "2" }, sensitiveHeaders: ["x-api-key"] };
      await client.get(`${a.origin}/start`, config);
      expect(a.requests[0].headers).toMatchObject({ "x-api-key": "1", "x-other": "2" });
      expect(b.requests[0].headers).toMatchObject({ "x-other": "2" });
      expect(b.requests[0].headers["x-api-key"]).toBeUndefined();
    }));

  it("lets beforeRedirect see both sides and change the next request", () =>
    play(async ({ client, a }) => {
      redirectAll(a, "/end");
      const seen: unknown[] = [];
      const { data } = await client.get<string>(`${a.origin}/start`, {
        headers: { "x-old": "1" },
        beforeRedirect: (given, { statusCode, headers }, request) => {
          const options = given as { href: string; method: string; path: string; headers: Record<string, string> };
          seen.push(options.href, options.method, statusCode, headers.location, request.url, request.method);
          options.headers["x-new"] = "2";
          delete options.headers["x-old"];
          options.path = "/end?changed";
        },
      });
      expect(data).toBe("/end?changed");
      expect(seen).toEqual([`${a.origin}/end`, "GET", 302, "/end", `${a.origin}/start`, "GET"]);
      expect(a.requests[1].headers).toMatchObject({ "x-new": "2" });
      expect(a.requests[1].headers["x-old"]).toBeUndefined();
    }));

  it("stops with axios' error when beforeRedirect throws, and when the location is no URL", () =>
    play(async ({ client, a }) => {
      redirectAll(a, "/end");
      const stopped = client.get(`${a.origin}/start`, {
        beforeRedirect: () => {
          throw new Error("not there");
        },
      });
      await expect(stopped).rejects.toMatchObject({
        isAxiosError: true,
        message: "Redirected request failed: not there",
      });
      redirectAll(a, "http://[");
      await expect(client.get(`${a.origin}/start`)).rejects.toBeInstanceOf(AxiosError);
      redirectAll(a, "file:///etc/passwd");
      await expect(client.get(`${a.origin}/start`)).rejects.toBeInstanceOf(AxiosError);
    }));

  it("sends a stream again where axios does: from what it has kept of it", () =>
    play(async ({ client, a }) => {
      const bodies: Promise<string>[] = [];
      a.answer = (request, answer) => {
        const body = text(request as unknown as Readable);
        bodies.push(body);
        const isEnd = request.url === "/end";
        void body.then(() => reply(answer, isEnd ? 200 : 307, { location: "/end" }, request.url));
      };
      await expect(client.post(`${a.origin}/start`, Readable.from(["once"]))).resolves.toMatchObject({ data: "/end" });
      expect(await Promise.all(bodies)).toEqual(["once", "once"]);
    }));
});
