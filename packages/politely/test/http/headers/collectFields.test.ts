import { createServer, get, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import axios from "axios";
import { request } from "undici";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { collectFields as collectNamed, type LimitFields } from "../../../src/http/headers/collectFields.js";
import { type AnyHeaders, parseRateLimit } from "../../../src/http/headers/index.js";
import { vendorNames } from "../../../src/http/headers/vendors.js";

const said = { limit: 100, remaining: 7, resetMs: 33_000, policyWindowMs: 60_000, retryAfterMs: 9_000 };

describe("the headers of real clients", () => {
  let server: Server;
  let url: string;

  beforeAll(async () => {
    server = createServer((_request, response) => {
      response.setHeader("RateLimit-Policy", ['"a";q=10;w=1', '"b";q=100;w=60']);
      response.setHeader("RateLimit", ['"a";r=9;t=1', '"b";r=7;t=33']);
      response.setHeader("Retry-After", ["9", "3"]);
      response.setHeader("Set-Cookie", ["a=1", "b=2"]);
      response.end("ok");
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  });

  afterAll(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });

  async function incoming(): Promise<IncomingMessage> {
    return new Promise((resolve, reject) => {
      get(url, { agent: false }, (message) => resolve(message.resume())).on("error", reject);
    });
  }

  it.each<[string, () => Promise<AnyHeaders>]>([
    ["fetch", async () => (await fetch(url)).headers],
    ["axios", async () => (await axios.get(url)).headers as AnyHeaders],
    ["undici's request", async () => (await request(url)).headers as AnyHeaders],
    ["node:http, raw", async () => (await incoming()).rawHeaders],
    ["node:http, line by line", async () => (await incoming()).headersDistinct],
    ["pairs", async () => [...(await fetch(url)).headers]],
    ["a map", async () => new Map((await fetch(url)).headers)],
  ])("are read from %s", async (_title, headers) => {
    expect(parseRateLimit(await headers(), 0)).toMatchObject(said);
  });

  it("are read from node:http, which keeps the first line of Retry-After only", async () => {
    expect(parseRateLimit((await incoming()).headers, 0)).toMatchObject(said);
  });
});

function collectFields(headers: unknown): LimitFields | undefined {
  return collectNamed(headers, vendorNames);
}

/** The text of a field; undefined when it is absent. */
function textOf(found: LimitFields | undefined, name: string): string | undefined {
  return found?.fields.find((field) => field.name.name === name)?.text;
}

describe("collectFields", () => {
  it("is undefined when no field is about limits", () => {
    const others = { Date: "Sun, 01 Mar 2026 00:00:00 GMT", Age: "5", Server: "nginx", "Retry-After": " " };
    for (const headers of [
      others,
      new Headers(others),
      Object.entries(others),
      Object.entries(others).flat(),
      {},
      [],
      null,
      5,
    ]) {
      expect(collectFields(headers)).toBeUndefined();
    }
  });

  it("joins the lines of a field, whatever the case of its name", () => {
    const pairs = [
      ["RateLimit", '"a";r=1'],
      ["ratelimit", '"b";r=2'],
      ["x-ratelimit-limit", "5"],
      ["X-RateLimit-Limit", "6"],
      ["Age", "1"],
      ["AGE", "2"],
    ];
    for (const headers of [pairs, pairs.flat(), Object.fromEntries(pairs)]) {
      const fields = collectFields(headers);
      expect(fields?.age).toBe("1, 2");
      expect(textOf(fields, "ratelimit")).toBe('"a";r=1, "b";r=2');
      expect(textOf(fields, "x-ratelimit-limit")).toBe("5, 6");
    }
  });

  it("does not touch values that nobody needs", () => {
    const headers = {
      get "set-cookie"(): string {
        throw new Error("touched");
      },
      "retry-after": "5",
    };
    expect(textOf(collectFields(headers), "retry-after")).toBe("5");
  });

  it("looks at 1,024 fields and no more", () => {
    const fields = (count: number): [string, string][] => [
      ...Array.from({ length: count }, (_, i): [string, string] => [`x-other-${i}`, "1"]),
      ["retry-after", "5"],
    ];
    for (const form of [
      (pairs: [string, string][]) => pairs,
      Object.fromEntries,
      (pairs: [string, string][]) => pairs.flat(),
    ]) {
      expect(collectFields(form(fields(1_023)))).toBeDefined();
      expect(collectFields(form(fields(1_024)))).toBeUndefined();
    }
  });

  it("takes a value beyond 8,192 characters for absent", () => {
    expect(collectFields({ "retry-after": `${"0".repeat(8_191)}5` })).toBeDefined();
    expect(collectFields({ "retry-after": `${"0".repeat(8_192)}5` })).toBeUndefined();
    expect(collectFields(["retry-after", Buffer.from(`${"0".repeat(8_192)}5`)])).toBeUndefined();
  });

  it("keeps 64 buckets and no more", () => {
    const names = Array.from({ length: 100 }, (_, i) => [
      `x-ratelimit-limit-${i}`,
      `x-ratelimit-remaining-${i}`,
    ]).flat();
    expect(parseRateLimit(Object.fromEntries(names.map((name) => [name, "1"])), 0).buckets).toHaveLength(64);
  });
});
