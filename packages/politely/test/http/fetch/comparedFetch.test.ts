import { describe, expect, it } from "vitest";
import { politely } from "../../../src/index.js";
import { type LocalSite, localSite } from "./localSite.js";

const HERE = "127.0.0.2";
const THERE = "127.0.0.3";
const NAMED = { hosts: { [HERE]: { concurrency: 1 }, [THERE]: { concurrency: 1 } } };

/** Node's own fetch, and ours. */
function both(): [string, typeof fetch][] {
  return [
    ["the platform's fetch", globalThis.fetch],
    ["polite.fetch", politely(NAMED).fetch],
  ];
}

function pages(): Promise<LocalSite> {
  return localSite(HERE, (_request, response) => response.end("page"));
}

/** Lets what is not read be read ahead. */
function turn(): Promise<void> {
  return new Promise((resolve) => void setTimeout(resolve, 50));
}

describe.each(both())("%s", (_name, fetch) => {
  it.each([
    ["a header of a name alone", { headers: [["a"]] }],
    ["a header of nothing", { headers: [[]] }],
    ["a header of three parts", { headers: [["a", "b", "c"]] }],
    ["a header that is a text", { headers: ["ab"] }],
    ["a header that is nothing", { headers: [null] }],
    ["headers that are a text", { headers: "ab" }],
    ["headers that are a number", { headers: 5 }],
    ["null as what to do with redirects", { redirect: null }],
  ])("refuses %s, and sends nothing", async (_what, init) => {
    await using site = await pages();
    await expect(fetch(site.origin, init as unknown as RequestInit)).rejects.toBeInstanceOf(TypeError);
    expect(site.seen).toEqual([]);
  });

  it("takes pairs of any kind as headers", async () => {
    await using site = await pages();
    const headers = [new Set(["x-a", "1"]), ["x-b", 2]] as unknown as [string, string][];
    await (await fetch(site.origin, { headers })).text();
    expect(site.seen[0].headers).toMatchObject({ "x-a": "1", "x-b": "2" });
  });

  it.each([
    ["http:", "/x"],
    ["http:/", "/x"],
    ["http:\\\\", "\\x"],
    ["  http://", "/x "],
    ["HTTP://", "/x"],
  ])("takes a URL that is written %j…%j", async (before, after) => {
    await using site = await pages();
    const response = await fetch(site.origin.replace("http://", before) + after);
    expect([response.url, await response.text()]).toEqual([`${site.origin}/x`, "page"]);
  });

  it.each([HERE, THERE])("follows no redirect to a URL with a password, at %s, and does not tell it", async (host) => {
    await using there = await localSite(THERE, (_request, response) => response.end("page"));
    await using here = await localSite(HERE, (_request, response) => {
      const { port } = new URL(host === HERE ? here.origin : there.origin);
      response.writeHead(302, { location: `http://user:secret@${host}:${port}/to` }).end();
    });
    const error = await fetch(here.origin).then(
      () => undefined,
      (thrown: unknown) => thrown as TypeError & { readonly cause: Error },
    );
    expect(error).toBeInstanceOf(TypeError);
    expect(error?.message).toBe("fetch failed");
    expect(error?.cause).toBeInstanceOf(Error);
    expect(`${error?.cause.message} ${error?.cause.stack}`).not.toContain("secret");
    expect([here.seen.length, there.seen.length]).toEqual([1, 0]);
  });

  it("leaves no origin with mode same-origin, said in the init or by a Request", async () => {
    await using there = await localSite(THERE, (_request, response) => response.end("page"));
    await using here = await localSite(HERE, ({ url }, response) => {
      const location = { "/": "/near", "/near": `${there.origin}/far` }[url];
      response.writeHead(302, { location }).end();
    });
    await expect(fetch(here.origin, { mode: "same-origin" })).rejects.toThrow(TypeError);
    await expect(fetch(new Request(here.origin, { mode: "same-origin" }))).rejects.toThrow(TypeError);
    expect([here.seen.length, there.seen.length]).toEqual([4, 0]);
  });

  it("gives a late copy headers that cannot be changed", async () => {
    await using site = await pages();
    const response = await fetch(site.origin);
    await turn();
    const copy = response.clone();
    expect(() => copy.headers.set("a", "b")).toThrow(TypeError);
    expect([copy.headers.get("a"), copy.headers.get("content-length")]).toEqual([null, "4"]);
    expect([await copy.text(), await response.text()]).toEqual(["page", "page"]);
  });

  it.each<[string, (response: Response) => Promise<unknown>]>([
    ["text", (response) => response.text()],
    ["a stream", async (response) => response.body?.getReader().read()],
    ["a copy", (response) => response.clone().text()],
  ])("fails after an abort, read as %s, although the body has arrived", async (_way, read) => {
    await using site = await pages();
    const controller = new AbortController();
    const response = await fetch(site.origin, { signal: controller.signal });
    await turn();
    const reason = new Error("enough");
    controller.abort(reason);
    // Node 20 has an error of its own in place of the reason.
    await expect(read(response)).rejects.toSatisfy(
      (error) => error === reason || (error as Error).name === "AbortError",
    );
  });
});

describe.each(both())("a response of %s", (_name, fetch) => {
  it("shows all its properties to whoever walks through them", async () => {
    await using site = await pages();
    const response = await fetch(site.origin);
    const names: string[] = [];
    for (const name in response) names.push(name);
    expect(names).toEqual(expect.arrayContaining(["body", "bodyUsed", "clone", "redirected", "text", "type", "url"]));
    expect(await response.text()).toBe("page");
  });

  it("says what is wrong when a method is called without it", async () => {
    await using site = await pages();
    const { text } = await fetch(site.origin);
    await expect((async () => text())()).rejects.toThrow(/Illegal invocation|Response/);
  });

  it("comes for a method that is no text", async () => {
    await using site = await pages();
    const method = { toString: () => "PUT" } as unknown as string;
    expect(await (await fetch(site.origin, { method })).text()).toBe("page");
    expect(site.seen[0].method).toBe("PUT");
  });
});

describe("headers of a late copy of an answer from a fetch of one's own", () => {
  it("are its own where those of the answer can be changed", async () => {
    const polite = politely(NAMED, { fetch: () => Promise.resolve(new Response("page", { headers: { a: "1" } })) });
    const response = await polite.fetch(`http://${HERE}/`);
    await turn();
    const copy = response.clone();
    copy.headers.set("a", "2");
    expect([response.headers.get("a"), copy.headers.get("a")]).toEqual(["1", "2"]);
  });
});

describe("a form that only its own library understands", () => {
  it("is given to a fetch of one's own as it is", async () => {
    /** As the class of npm's form-data: a FormData by name that cannot be walked through. */
    class OtherForm {
      readonly [Symbol.toStringTag] = "FormData";
    }
    const bodies: unknown[] = [];
    const polite = politely(NAMED, {
      fetch: (_input, init) => {
        bodies.push(init?.body);
        return Promise.resolve(new Response("page"));
      },
    });
    const form = new OtherForm();
    await polite.fetch(`http://${HERE}/`, { method: "POST", body: form as unknown as FormData });
    expect(bodies).toEqual([form]);
    expect(bodies[0]).toBe(form);
  });
});
