import { describe, expect, it } from "vitest";
import { politely } from "../../../src/index.js";
import { localSite } from "./localSite.js";

const HERE = "127.0.0.2";
const THERE = "127.0.0.3";
const { fetch: politeFetch } = politely({ hosts: { [HERE]: { concurrency: 1 }, [THERE]: { concurrency: 1 } } });

/** What each hop of a request with `init` tells of its referrer, when the first one is redirected with `policy`. */
async function told(send: typeof fetch, { init, policy, isFar }: Way): Promise<(string | undefined)[]> {
  await using there = await localSite(THERE, (_request, response) => response.end());
  await using here = await localSite(HERE, ({ url }, response) => {
    if (url === "/") response.writeHead(302, { location: `${isFar ? there.origin : ""}/end`, ...policy }).end();
    else response.end();
  });
  const named = (text: string) => text.replace("NEAR", here.origin).replace("FAR", there.origin);
  await send(here.origin, { ...init, referrer: named(init.referrer) });
  const seen = [...here.seen, ...there.seen].map(({ headers }) => headers.referer);
  return seen.map((text) => text?.replace(here.origin, "NEAR").replace(there.origin, "FAR"));
}

interface Way {
  readonly init: RequestInit & { readonly referrer: string };
  readonly policy?: Record<string, string>;
  readonly isFar?: boolean;
}

describe("the referrer over redirects", () => {
  it.each<[string, Way, (string | undefined)[]]>([
    ["as it was, at one origin", { init: { referrer: "NEAR/a?b" } }, ["NEAR/a?b", "NEAR/a?b"]],
    ["only its origin at another", { init: { referrer: "NEAR/a" }, isFar: true }, ["NEAR/a", "NEAR/"]],
    ["no more than the hop before", { init: { referrer: "FAR/a" }, isFar: true }, ["FAR/", "FAR/"]],
    [
      "as little as the redirect says",
      { init: { referrer: "NEAR/a" }, policy: { "referrer-policy": "origin" } },
      ["NEAR/a", "NEAR/"],
    ],
    [
      "nothing, if the redirect says so",
      { init: { referrer: "NEAR/a", referrerPolicy: "unsafe-url" }, policy: { "referrer-policy": "same-origin" } },
      ["NEAR/a", undefined],
    ],
    [
      "by the last policy that is known",
      { init: { referrer: "NEAR/a" }, policy: { "referrer-policy": "origin, unsafe-url, new" }, isFar: true },
      ["NEAR/a", "NEAR/a"],
    ],
    [
      "not again what a policy has kept back",
      {
        init: { referrer: "NEAR/a", referrerPolicy: "origin-when-cross-origin" },
        policy: { "referrer-policy": "unsafe-url" },
        isFar: true,
      },
      ["NEAR/", "NEAR/"],
    ],
  ])("is told %s, as by the platform's fetch", async (_how, way, expected) => {
    expect(await told(globalThis.fetch, way)).toEqual(expected);
    expect(await told(politeFetch, way)).toEqual(expected);
  });

  it("of a Request is told, unless an init says anything", async () => {
    await using site = await localSite(HERE, (_request, response) => response.end());
    const request = () =>
      new Request(site.origin, { referrer: "https://from.example/a", referrerPolicy: "unsafe-url" });
    await politeFetch(request());
    await politeFetch(request(), { politely: { maxWait: "1s" } });
    await politeFetch(request(), { method: "HEAD" });
    const whole = "https://from.example/a";
    expect(site.seen.map(({ headers }) => headers.referer)).toEqual([whole, whole, undefined]);
  });
});
