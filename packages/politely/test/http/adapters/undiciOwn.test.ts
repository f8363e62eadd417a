import { AsyncResource } from "node:async_hooks";
import { Agent, fetch as undiciFetch } from "undici";
import { describe, expect, it } from "vitest";
import { exchangeOf } from "../../../src/http/exchange.js";
import { politeInterceptor } from "../../../src/http/undici/index.js";
import { type PolicyInput, politely } from "../../../src/index.js";
import type { Limiter } from "../../../src/types.js";
import { localSite } from "../fetch/localSite.js";

const HERE = "127.0.0.2";
const THERE = "127.0.0.3";

/** A limiter whose own requests go through a dispatcher that it paces itself. */
function looped(policy: PolicyInput) {
  const polite: Limiter = politely(policy, {
    fetch: (input, init) =>
      undiciFetch(input as string, { ...init, dispatcher: agent } as object) as unknown as Promise<Response>,
  });
  const agent = new Agent().compose(politeInterceptor(polite));
  return polite;
}

describe("a limiter whose fetch goes through its own interceptor", () => {
  it("counts each request once, also at concurrency 1", async () => {
    await using site = await localSite(HERE, (_request, response) => response.end("page"));
    const polite = looped({ hosts: { [HERE]: { concurrency: 1 } } });
    for (let index = 0; index < 3; index++) {
      expect(await (await polite.fetch(`${site.origin}/${index}#part`)).text()).toBe("page");
    }
    expect(polite.stats(HERE)).toMatchObject({ totalRequests: 3, inFlight: 0 });
  });

  it("takes over the request on whose behalf a dispatcher is called, once, and no other", async () => {
    const polite = looped({});
    const exchange = exchangeOf(polite, "the test");
    const url = "https://a.example/";
    const takesOver = (target: string): boolean => exchange.relay?.take(target) !== undefined;
    const heard: boolean[] = [];
    await exchange.sendOwn(url, await exchange.admit({ url }), async () => {
      heard.push(takesOver("https://b.example/"), takesOver("no target"));
      await Promise.resolve();
      heard.push(takesOver(`${url}?`), takesOver(url));
    });
    expect(heard).toEqual([false, false, true, false]);
    expect(takesOver(url)).toBe(false);
  });

  it("takes over nothing on behalf of a request that is answered", async () => {
    const exchange = exchangeOf(looped({}), "the test");
    const url = "https://a.example/";
    const takesOver = await exchange.sendOwn(url, await exchange.admit({ url }), () =>
      Promise.resolve(AsyncResource.bind(() => exchange.relay?.take(url) !== undefined)),
    );
    expect(takesOver()).toBe(false);
  });

  it("gets robots.txt through redirects without waiting for itself", async () => {
    await using there = await localSite(THERE, (_request, response) => response.end("User-agent: *\nDisallow: /no"));
    await using here = await localSite(HERE, ({ url }, response) => {
      if (url === "/robots.txt") response.writeHead(301, { location: `${there.origin}/rules.txt` }).end();
      else response.end("page");
    });
    const polite = looped({
      hosts: { [HERE]: { concurrency: 1 }, [THERE]: { concurrency: 1 } },
      http: { userAgent: "Archive/1", robots: true },
    });
    expect(await (await polite.fetch(`${here.origin}/yes`)).text()).toBe("page");
    await expect(polite.fetch(`${here.origin}/no`)).rejects.toMatchObject({ code: "POLITELY_ROBOTS" });
    expect(polite.stats(HERE)).toMatchObject({ totalRequests: 2, inFlight: 0 });
  });
});
