import { describe, expect, it } from "vitest";
import { politely } from "../../../src/index.js";
import { VirtualClock } from "../../../src/testing/index.js";
import { type LocalSite, localSite } from "./localSite.js";

const HERE = "127.0.0.2";
const GAP_MS = 1_000;

/** Makes a request for each of `count`, the later ones wait; then changes something, and lets them go. */
async function seenAfter(
  count: number,
  ask: (fetch: typeof globalThis.fetch, index: number, site: LocalSite) => Promise<Response>,
  change: () => void,
): Promise<LocalSite["seen"]> {
  await using site = await localSite(HERE, (_request, response) => response.end("page"));
  const clock = new VirtualClock();
  const { fetch } = politely({ hosts: { [HERE]: { minDelay: GAP_MS } } }, { clock });
  const pages = Array.from({ length: count }, (_, index) => ask(fetch, index + 1, site));
  change();
  for (const page of pages) {
    await (await page).text();
    await clock.advance(GAP_MS);
  }
  return site.seen;
}

describe("a request that waits is sent as it was when fetch was called", () => {
  it("with the URL of then, to the host it was paced under", async () => {
    const url = new URL("http://none.example/list");
    const ask = (fetch: typeof globalThis.fetch, page: number, site: LocalSite): Promise<Response> => {
      url.href = `${site.origin}/list?page=${page}`;
      return fetch(url);
    };
    const seen = await seenAfter(3, ask, () => {
      url.host = "b.example";
    });
    expect(seen.map((request) => request.url)).toEqual([1, 2, 3].map((page) => `/list?page=${page}`));
  });

  it.each<[string, () => Headers | Record<string, string> | [string, string][]]>([
    ["Headers", () => new Headers()],
    ["a record", () => ({})],
    ["pairs", () => []],
  ])("with the headers of then, given as %s", async (_, make) => {
    const headers = make();
    const change = (value: string): void => {
      if (headers instanceof Headers) headers.set("x-n", value);
      else if (Array.isArray(headers)) headers[0] = ["x-n", value];
      else headers["x-n"] = value;
    };
    const ask = (fetch: typeof globalThis.fetch, n: number, site: LocalSite): Promise<Response> => {
      change(String(n));
      return fetch(site.origin, { headers });
    };
    const seen = await seenAfter(2, ask, () => change("9"));
    expect(seen.map((request) => request.headers["x-n"])).toEqual(["1", "2"]);
  });

  it("with the headers of then, those of a Request too", async () => {
    let request: Request | undefined;
    const ask = (fetch: typeof globalThis.fetch, n: number, site: LocalSite): Promise<Response> => {
      request = new Request(site.origin, { headers: { "x-n": String(n) } });
      return fetch(request);
    };
    const seen = await seenAfter(2, ask, () => request?.headers.set("x-n", "9"));
    expect(seen.map(({ headers }) => headers["x-n"])).toEqual(["1", "2"]);
  });

  const bytes = new Uint8Array([48, 48, 48]);
  const form = new FormData();
  const query = new URLSearchParams();
  it.each([
    ["bytes", bytes.subarray(1, 2), (n: number): void => void bytes.fill(48 + n, 1, 2), ["1", "2"]],
    ["a buffer", bytes.buffer, (n: number): void => void bytes.fill(48 + n, 1, 2), ["010", "020"]],
    ["a query", query, (n: number) => query.set("n", String(n)), ["n=1", "n=2"]],
    ["a form", form, (n: number) => form.set("n", `<${n}>`), ["<1>", "<2>"]],
  ])("with the body of then, given as %s", async (_, body, change, expected) => {
    const ask = (fetch: typeof globalThis.fetch, n: number, site: LocalSite): Promise<Response> => {
      change(n);
      return fetch(site.origin, { method: "POST", body });
    };
    const seen = await seenAfter(2, ask, () => change(9));
    expect(seen.map((request) => /<\d>|[\dn=]+$/.exec(request.body)?.[0])).toEqual(expected);
  });

  it("and again after a redirect, with names of headers as they were written", async () => {
    await using site = await localSite(HERE, ({ url }, response) => {
      if (url === "/moved") response.writeHead(307, { location: "/end" }).end();
      else response.end(JSON.stringify(response.req.rawHeaders));
    });
    const { fetch } = politely({ hosts: { [HERE]: { concurrency: 1 } } });
    const body = new URLSearchParams({ n: "A" });
    const page = fetch(`${site.origin}/moved`, { method: "POST", body });
    body.set("n", "B");
    await (await page).text();
    expect(site.seen.map((request) => request.body)).toEqual(["n=A", "n=A"]);
    const written = async (send: typeof globalThis.fetch): Promise<string> =>
      (await send(`${site.origin}/end`, { headers: { "X-Api-Key": "1" } })).text();
    expect(await written(fetch)).toBe(await written(globalThis.fetch));
  });
});
