import { describe, expect, it } from "vitest";
import { type Limiter, limit, politely } from "../../../src/index.js";
import { VirtualClock } from "../../../src/testing/index.js";
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

  it("a large body that nobody reads gives it back after 5 s, and goes on", async () => {
    await using site = await localSite(HERE, (_request, response) => response.end(Buffer.alloc(8 * MIB)));
    const clock = new VirtualClock();
    for (const send of [undefined, globalThis.fetch.bind(undefined)]) {
      const limiter = politely({ hosts: { [HERE]: { concurrency: 1 } } }, { clock, fetch: send });
      const response = await limiter.fetch(site.origin);
      const next = limiter.fetch(site.origin);
      await rest();
      await clock.advance(4_900);
      expect([limiter.stats(HERE)?.inFlight, limiter.stats(HERE)?.waiting]).toEqual([1, 1]);
      await clock.advance(200);
      await (await next).body?.cancel();
      expect((await response.arrayBuffer()).byteLength).toBe(8 * MIB);
      await until(() => inFlight(limiter) === 0);
    }
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
    let finish = (): void => undefined;
    await using site = await localSite(HERE, (_request, response, index) => {
      response.write("hel");
      finish = () => response.end("lo");
      if (index === 3) finish();
    });
    const inner = polite(1);
    const outer = limit({ concurrency: 1 }, { fetch: (input, init) => inner.fetch(input, init) });
    for (let index = 0; index < 3; index++) {
      const response = await outer.fetch(site.origin);
      expect([outer.stats().inFlight, inFlight(inner)]).toEqual([1, 1]);
      finish();
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

/** Long enough for a small body to be read ahead. */
const rest = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 50));

describe.each([
  ["at once", async () => undefined],
  ["late", rest],
])("a response that is copied %s", (_when, wait) => {
  it("has copies of copies that say of themselves what it says", async () => {
    await using site = await localSite(HERE, ({ url }, response) => {
      if (url === "/") response.writeHead(302, { location: "/end" }).end();
      else response.writeHead(404, "Gone Fishing", { "x-a": "1", "content-type": "text/plain" }).end("nothing here");
    });
    const limiter = polite(1);
    const response = await limiter.fetch(site.origin);
    await wait();
    let copy = response;
    for (let depth = 1; depth <= 3; depth++) {
      copy = copy.clone();
      const { status, statusText, ok, url, redirected, type } = copy;
      expect([depth, status, statusText, ok]).toEqual([depth, 404, "Gone Fishing", false]);
      expect([depth, url, redirected, type]).toEqual([depth, `${site.origin}/end`, true, "basic"]);
      expect([copy.headers.get("x-a"), copy.headers.get("content-type")]).toEqual(["1", "text/plain"]);
      expect(copy.headers).not.toBe(response.headers);
    }
    expect([await copy.text(), await response.text()]).toEqual(["nothing here", "nothing here"]);
    expect(inFlight(limiter)).toBe(0);
  });

  it("has copies of copies with a status and a reason that no Response can be made with", async () => {
    await using site = await localSite(HERE, (_request, response) => {
      // The code is LinkedIn's; the reason is what a site that writes UTF-8 sends.
      response.socket?.end("HTTP/1.1 999 \u597d\r\nx-a: 1\r\ncontent-length: 2\r\nconnection: close\r\n\r\nno");
    });
    const response = await polite(1).fetch(site.origin);
    await wait();
    const copy = response.clone().clone();
    const { status, statusText, ok, url } = copy;
    expect([status, statusText, ok, url]).toEqual([999, response.statusText, false, `${site.origin}/`]);
    expect([copy.headers.get("x-a"), await copy.text()]).toEqual(["1", "no"]);
  });

  it("lets the next one go when it is cancelled and nobody reads the copy", async () => {
    await using site = await localSite(HERE, (_request, response) => response.end("twice"));
    const limiter = polite(1);
    const response = await limiter.fetch(site.origin);
    await wait();
    const copy = response.clone();
    await Promise.race([response.body?.cancel(), rest()]);
    expect((await limiter.fetch(site.origin)).status).toBe(200);
    expect(await copy.text()).toBe("twice");
  });

  it("keeps its place while one of them is still to come, whichever is cancelled", async () => {
    let finish = (): void => undefined;
    await using site = await localSite(HERE, (_request, response) => {
      response.write("first ");
      finish = () => response.end("last");
    });
    const limiter = polite(1);
    for (const order of [
      [0, 1],
      [1, 0],
      [0, 1, 2],
      [1, 0, 2],
      [2, 0, 1],
    ]) {
      const response = await limiter.fetch(site.origin);
      await wait();
      const copy = response.clone();
      const family = order.length === 2 ? [response, copy] : [response, copy, copy.clone()];
      const [cancelled, ...others] = order.map((index) => family[index]);
      cancelled.body?.cancel().catch(() => undefined);
      await rest();
      expect([order, inFlight(limiter)]).toEqual([order, 1]);
      finish();
      expect(await Promise.all(others.map((each) => each.text()))).toEqual(others.map(() => "first last"));
      expect([order, inFlight(limiter)]).toEqual([order, 0]);
    }
  });

  it("is free when it and its copies are all cancelled", async () => {
    await using site = await localSite(HERE, (_request, response) => void response.write("endless"));
    const limiter = polite(1);
    const response = await limiter.fetch(site.origin);
    await wait();
    const copy = response.clone();
    await Promise.all([response, copy, copy.clone()].map(async (each) => each.body?.cancel()));
    expect(inFlight(limiter)).toBe(0);
  });

  it("cannot be copied once it was read, as with fetch", async () => {
    await using site = await localSite(HERE, (_request, response) => response.end("once"));
    const response = await polite(1).fetch(site.origin);
    await wait();
    const copy = response.clone();
    await Promise.all([copy.text(), response.text()]);
    for (const each of [response, copy]) expect(() => each.clone()).toThrow(TypeError);
    expect([response.bodyUsed, copy.bodyUsed]).toEqual([true, true]);
  });
});

describe("a body that is taken past its response", () => {
  it("keeps it for as long as its copy is read", async () => {
    let finish = (): void => undefined;
    await using site = await localSite(HERE, (_request, response) => {
      response.write("first ");
      finish = () => response.end("last");
    });
    const limiter = polite(1);
    const response = await limiter.fetch(site.origin);
    const text = response.clone().text();
    const taken = (Reflect.get(Response.prototype, "body", response) as ReadableStream).getReader();
    await rest();
    expect(inFlight(limiter)).toBe(1);
    finish();
    expect(await text).toBe("first last");
    expect(inFlight(limiter)).toBe(0);
    await taken.cancel();
  });
});

describe("a body that is no web stream", () => {
  it("frees its place at once, for its end cannot be seen", async () => {
    class NodeLike extends Response {
      override get body(): never {
        return { pipe: () => undefined } as never;
      }
    }
    const limiter = limit({ concurrency: 1 }, { fetch: async () => new NodeLike("page") });
    const response = await limiter.fetch("https://a.example/");
    expect([limiter.stats().inFlight, await response.text()]).toEqual([0, "page"]);
    expect(response.body).toHaveProperty("pipe");
  });
});

describe.each([
  ["at once", async () => undefined],
  ["late", rest],
])("a body taken over %s", (_when, wait) => {
  it.each<[string, (response: Response) => Promise<unknown>, unknown]>([
    ["is that of a new Response", (response) => new Response(response.body, response).text(), "page"],
    ["comes chunk by chunk", (response) => textOf(response.body), "page"],
    ["can be left in the middle", (response) => firstOf(response.body), "page"],
    [
      "can be transferred",
      ({ body }) => new Response(body && structuredClone(body, { transfer: [body] as never })).text(),
      "page",
    ],
  ])("%s, and frees its place", async (_how, take, expected) => {
    await using site = await localSite(HERE, (_request, response) => response.end("page"));
    const limiter = polite(1);
    const response = await limiter.fetch(site.origin);
    await wait();
    expect(await take(response)).toBe(expected);
    expect(response.bodyUsed).toBe(true);
    await until(() => inFlight(limiter) === 0);
  });
});

async function textOf(body: ReadableStream<Uint8Array> | null): Promise<string> {
  let text = "";
  for await (const chunk of body ?? []) text += new TextDecoder().decode(chunk);
  return text;
}

async function firstOf(body: ReadableStream<Uint8Array> | null): Promise<string> {
  for await (const chunk of body ?? []) return new TextDecoder().decode(chunk);
  return "";
}
