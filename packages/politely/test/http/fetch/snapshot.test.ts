import { describe, expect, it } from "vitest";
import { politely } from "../../../src/index.js";
import { localSite } from "./localSite.js";
import { scriptedSite } from "./scripted.js";

const SLOW = { default: { minDelay: "1s" } } as const;
const PAGE = "https://a.example/list";

describe("a request that waits is sent as it was when fetch was called", () => {
  it("with the URL of then, to the host it was paced under", async () => {
    const { polite, clock, seen } = scriptedSite(SLOW, () => 200);
    const url = new URL(PAGE);
    const pages = [1, 2, 3].map((page) => {
      url.searchParams.set("page", String(page));
      return polite.fetch(url);
    });
    url.host = "b.example";
    await clock.runToEnd();
    await Promise.all(pages);
    expect(seen.map((request) => request.url)).toEqual([1, 2, 3].map((page) => `${PAGE}?page=${page}`));
  });

  it.each<[string, () => Headers | Record<string, string> | [string, string][]]>([
    ["Headers", () => new Headers()],
    ["a record", () => ({})],
    ["pairs", () => []],
  ])("with the headers of then, given as %s", async (_, make) => {
    const { polite, clock, seen } = scriptedSite(SLOW, () => 200);
    const headers = make();
    const change = (value: string): void => {
      if (headers instanceof Headers) headers.set("x-n", value);
      else if (Array.isArray(headers)) headers[0] = ["x-n", value];
      else headers["x-n"] = value;
    };
    const pages = ["1", "2"].map((value) => {
      change(value);
      return polite.fetch(PAGE, { headers });
    });
    change("9");
    await clock.runToEnd();
    await Promise.all(pages);
    expect(seen.map((request) => request.headers.get("x-n"))).toEqual(["1", "2"]);
  });

  it("with the headers of then, those of a Request too", async () => {
    const { polite, clock, seen } = scriptedSite(SLOW, () => 200);
    const request = new Request(PAGE, { headers: { "x-n": "1" } });
    const pages = [polite.fetch(PAGE), polite.fetch(request)];
    request.headers.set("x-n", "2");
    await clock.runToEnd();
    await Promise.all(pages);
    expect(seen[1].headers.get("x-n")).toBe("1");
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
    const { polite, clock, seen } = scriptedSite(SLOW, () => 200);
    const pages = [1, 2].map((n) => {
      change(n);
      return polite.fetch(PAGE, { method: "POST", body });
    });
    change(9);
    await clock.runToEnd();
    await Promise.all(pages);
    expect(seen.map((request) => /<\d>|[\dn=]+$/.exec(request.body ?? "")?.[0])).toEqual(expected);
  });

  it("and again after a redirect, with names of headers as they were written", async () => {
    await using site = await localSite("127.0.0.2", ({ url }, response) => {
      if (url === "/moved") response.writeHead(307, { location: "/end" }).end();
      else response.end(JSON.stringify(response.req.rawHeaders));
    });
    const { fetch } = politely({ hosts: { "127.0.0.2": { concurrency: 1 } } });
    const body = new Uint8Array([65]);
    const page = fetch(`${site.origin}/moved`, { method: "POST", body });
    body[0] = 66;
    await (await page).text();
    expect(site.seen.map((request) => request.body)).toEqual(["A", "A"]);
    const raw = await (await fetch(`${site.origin}/end`, { headers: { "X-Api-Key": "1" } })).text();
    expect(raw).toContain('"X-Api-Key"');
  });
});
