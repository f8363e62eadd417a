import { describe, expect, it } from "vitest";
import { type Limiter, type LimiterEvent, limit, politely } from "../../../src/index.js";
import { localSite } from "./localSite.js";

const HERE = "127.0.0.2";
const MIB = 1_048_576;

function polite(concurrency: number, more = {}): Limiter {
  return politely({ hosts: { [HERE]: { concurrency, ...more } } });
}

/** Waits for real sockets, at most five seconds. */
async function until(isTrue: () => boolean): Promise<void> {
  for (let turn = 0; turn < 1_000 && !isTrue(); turn++) await new Promise((resolve) => setTimeout(resolve, 5));
  expect(isTrue()).toBe(true);
}

function inFlight(limiter: Limiter): number {
  return limiter.stats(HERE)?.inFlight ?? 0;
}

describe("a place is kept until the body has arrived", () => {
  it("20 fetches whose bodies nobody reads all get through at concurrency 4", async () => {
    await using site = await localSite(HERE, (_request, response) => response.end("x".repeat(50_000)));
    const limiter = polite(4);
    const responses = await Promise.all(Array.from({ length: 20 }, () => limiter.fetch(site.origin)));
    expect(responses.map(({ status }) => status)).toEqual(Array.from({ length: 20 }, () => 200));
    expect(site.peak).toBeLessThanOrEqual(4);
    await until(() => inFlight(limiter) === 0);
    // What was read ahead is still there for whoever comes late.
    expect((await responses[3].text()).length).toBe(50_000);
    expect((await responses[19].arrayBuffer()).byteLength).toBe(50_000);
  });

  it("a slow body keeps the place until its last byte", async () => {
    let finish = (): void => undefined;
    await using site = await localSite(HERE, (_request, response) => {
      response.write("first ");
      finish = () => response.end("last");
    });
    const limiter = polite(1);
    const response = await limiter.fetch(site.origin);
    const text = response.text();
    const next = limiter.fetch(site.origin);
    await new Promise((resolve) => setTimeout(resolve, 30));
    expect([inFlight(limiter), site.seen.length]).toEqual([1, 1]);
    finish();
    expect(await text).toBe("first last");
    await next;
    expect(site.seen.length).toBe(2);
  });

  it.each(["text", "arrayBuffer", "blob", "json", "bytes"] as const)("%s() frees it", async (reader) => {
    await using site = await localSite(HERE, (_request, response) => {
      response.setHeader("content-type", "application/json");
      response.end('{"a":1}');
    });
    const limiter = polite(1);
    const response = await limiter.fetch(site.origin);
    // Node 20 has no bytes() yet.
    if (!(reader in response)) return;
    await (response as unknown as Record<string, () => Promise<unknown>>)[reader]();
    expect([inFlight(limiter), response.bodyUsed]).toEqual([0, true]);
  });

  it("JSON that is none frees it and says nothing of the site", async () => {
    await using site = await localSite(HERE, (_request, response) => response.end("<html>"));
    const limiter = polite(1);
    await expect((await limiter.fetch(site.origin)).json()).rejects.toThrow(SyntaxError);
    expect(limiter.stats(HERE)).toMatchObject({ inFlight: 0, cooldownMs: 0 });
  });

  it("a stream frees it at its end, and keeps its bytes", async () => {
    await using site = await localSite(HERE, (_request, response) => response.end(Buffer.alloc(3 * MIB, 7)));
    const limiter = polite(1);
    const response = await limiter.fetch(site.origin);
    let bytes = 0;
    for await (const chunk of response.body ?? []) bytes += chunk.byteLength;
    expect(bytes).toBe(3 * MIB);
    expect([inFlight(limiter), response.bodyUsed]).toEqual([0, true]);
  });

  it("a reader with its own buffer works", async () => {
    await using site = await localSite(HERE, (_request, response) => response.end("hello"));
    const response = await polite(1).fetch(site.origin);
    const reader = response.body?.getReader({ mode: "byob" });
    const first = await reader?.read(new Uint8Array(16));
    expect(new TextDecoder().decode(first?.value)).toBe("hello");
    expect((await reader?.read(new Uint8Array(16)))?.done).toBe(true);
  });

  it("cancelling a body frees it", async () => {
    await using site = await localSite(HERE, (_request, response) => void response.write("endless"));
    const limiter = polite(1);
    const response = await limiter.fetch(site.origin);
    await response.body?.cancel();
    expect(inFlight(limiter)).toBe(0);
  });

  it("a large body that nobody reads keeps it for maxHold, then it is free with a warning", async () => {
    await using site = await localSite(HERE, (_request, response) => response.end(Buffer.alloc(8 * MIB)));
    const limiter = polite(1, { maxHold: "200ms" });
    const events: LimiterEvent[] = [];
    limiter.subscribe((event) => events.push(event));
    const response = await limiter.fetch(site.origin);
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(inFlight(limiter)).toBe(1);
    const next = await limiter.fetch(site.origin);
    await next.body?.cancel();
    expect(events.filter(({ type }) => type === "expire")).toMatchObject([{ what: "permit", key: HERE }]);
    expect(events.filter(({ type }) => type === "warn")).toMatchObject([{ key: HERE }]);
    expect((await response.arrayBuffer()).byteLength).toBe(8 * MIB);
  });

  it("a copy and its original share the place: the first to be read frees it", async () => {
    await using site = await localSite(HERE, (_request, response) => response.end("twice"));
    const limiter = polite(1);
    const response = await limiter.fetch(site.origin);
    const copy = response.clone();
    expect([copy.url, copy.status, copy instanceof Response]).toEqual([response.url, 200, true]);
    expect(await copy.text()).toBe("twice");
    expect(inFlight(limiter)).toBe(0);
    expect(await response.text()).toBe("twice");
  });

  it("a copy made after the body was touched has the same bytes and facts", async () => {
    await using site = await localSite(HERE, ({ url }, response) => {
      if (url === "/") response.writeHead(302, { location: "/end" }).end();
      else response.end("twice");
    });
    const limiter = polite(1);
    const response = await limiter.fetch(site.origin);
    expect(response.body).toBe(response.body);
    const copy = response.clone();
    expect([copy.url, copy.redirected]).toEqual([`${site.origin}/end`, true]);
    expect([await copy.text(), await response.text()]).toEqual(["twice", "twice"]);
    expect(inFlight(limiter)).toBe(0);
  });

  it("reading twice fails as it does with fetch, and frees nothing twice", async () => {
    await using site = await localSite(HERE, (_request, response) => response.end("once"));
    const limiter = polite(1);
    const response = await limiter.fetch(site.origin);
    await response.text();
    await expect(response.text()).rejects.toThrow(TypeError);
    expect(limiter.stats(HERE)).toMatchObject({ inFlight: 0, totalRequests: 1 });
  });

  it("two limiters, one behind the other, each keep a place and get it back", async () => {
    await using site = await localSite(HERE, (_request, response) => response.end("hello"));
    const inner = polite(1);
    const outer = limit({ concurrency: 1 }, { fetch: (input, init) => inner.fetch(input, init) });
    for (let index = 0; index < 3; index++) {
      const response = await outer.fetch(site.origin);
      expect([outer.stats().inFlight, inFlight(inner)]).toEqual([1, 1]);
      expect(await (index === 1 ? response.clone() : response).text()).toBe("hello");
      expect([outer.stats().inFlight, inFlight(inner)]).toEqual([0, 0]);
    }
    await outer.fetch(site.origin);
    await until(() => outer.stats().inFlight === 0 && inFlight(inner) === 0);
  });

  it.each([204, 304])("an answer of %i has no body to wait for", async (status) => {
    await using site = await localSite(HERE, (_request, response) => response.writeHead(status).end());
    const limiter = polite(1);
    expect((await limiter.fetch(site.origin)).status).toBe(status);
    expect(inFlight(limiter)).toBe(0);
  });

  it("a HEAD request has none either", async () => {
    await using site = await localSite(HERE, (_request, response) => response.end());
    const limiter = polite(1);
    expect((await limiter.fetch(site.origin, { method: "HEAD" })).ok).toBe(true);
    await until(() => inFlight(limiter) === 0);
  });
});
