import "./register/builtIn.js";
import { createHash } from "node:crypto";
import axios from "axios";
import {
  Agent,
  type Dispatcher,
  getGlobalDispatcher,
  interceptors,
  request,
  setGlobalDispatcher,
  fetch as undiciFetch,
} from "undici";
import { describe, expect, it } from "vitest";
import { politeAxios } from "../../../src/http/axios/index.js";
import { politeInterceptor } from "../../../src/http/undici/index.js";
import { type PolicyInput, politely } from "../../../src/index.js";
import { VirtualClock } from "../../../src/testing/index.js";
import type { Limiter } from "../../../src/types.js";
import { localSite } from "../fetch/localSite.js";
import { builtInFetch } from "./register/builtIn.js";

const HERE = "127.0.0.2";
const THERE = "127.0.0.3";
const ONE: PolicyInput = { hosts: { [HERE]: { concurrency: 1, backoff: "none" } } };

const fetches = { "undici's fetch": undiciFetch, "Node's fetch": builtInFetch };
const retry = interceptors.retry({ minTimeout: 5 });

/** A limiter on virtual time whose own requests go through a dispatcher that it paces, with `outer` behind its interceptor. */
function composed(policy: PolicyInput, outer: Dispatcher.DispatcherComposeInterceptor[], fetch = undiciFetch) {
  const clock = new VirtualClock();
  const polite: Limiter = politely(policy, {
    clock,
    fetch: (input, init) => fetch(input as string, { ...init, dispatcher } as object) as unknown as Promise<Response>,
  });
  const dispatcher = new Agent().compose(politeInterceptor(polite), ...outer);
  return { clock, polite, dispatcher };
}

/** Waits for real sockets, at most five seconds. */
async function until(isTrue: () => boolean): Promise<void> {
  for (let turn = 0; turn < 1_000 && !isTrue(); turn++) await new Promise((resolve) => setTimeout(resolve, 5));
  expect(isTrue()).toBe(true);
}

describe.each(Object.entries(fetches))(
  "polite.fetch through a dispatcher of its own limiter, by %s",
  (_name, fetch) => {
    it("hears a 429 that an interceptor repeats, and the repetition waits", async () => {
      await using site = await localSite(HERE, (_request, response, index) => {
        response.writeHead(index === 0 ? 429 : 200).end("page");
      });
      const { clock, polite } = composed({ hosts: { [HERE]: { concurrency: 1, cooldown: "2s" } } }, [retry], fetch);
      const answer = polite.fetch(site.origin);
      await until(() => polite.stats(HERE)?.waiting === 1);
      expect(polite.check(HERE)).toMatchObject({ proceed: false, waitMs: 2_000 });
      expect(polite.stats(HERE)).toMatchObject({ inFlight: 0, throttledRequests: 1 });
      await clock.advance(2_000);
      expect(await (await answer).text()).toBe("page");
      expect(polite.stats(HERE)).toMatchObject({ totalRequests: 2, inFlight: 0 });
    });

    it("frees its place before an interceptor repeats the request", async () => {
      await using site = await localSite(HERE, (_request, response, index) => {
        response.writeHead(index === 0 ? 500 : 200).end(`page ${index}`);
      });
      const { polite } = composed(ONE, [retry, interceptors.redirect({ maxRedirections: 5 })], fetch);
      expect(await (await polite.fetch(site.origin)).text()).toBe("page 1");
      expect(polite.stats(HERE)).toMatchObject({ totalRequests: 2, inFlight: 0 });
    });

    it("frees its place before the platform follows a redirect by itself", async () => {
      await using site = await localSite(HERE, ({ url }, response) => {
        if (url === "/from") response.writeHead(302, { location: "/to" }).end();
        else response.end("page");
      });
      const { polite } = composed(ONE, [], fetch);
      const integrity = `sha256-${createHash("sha256").update("page").digest("base64")}`;
      expect(await (await polite.fetch(`${site.origin}/from`, { integrity })).text()).toBe("page");
      expect(polite.stats(HERE)).toMatchObject({ totalRequests: 2, inFlight: 0 });
    });

    it("counts a request once, however its URL is written", async () => {
      await using site = await localSite(HERE, (_request, response) => response.end("page"));
      const paths = ["/x?", "/x?#f", "/x#?", "/a b", "/ü", "//x", "/a\\b", "/a/../b", "/%zz"];
      const { polite } = composed(ONE, [], fetch);
      for (const path of paths) expect(await (await polite.fetch(`${site.origin}${path}`)).text()).toBe("page");
      expect(polite.stats(HERE)).toMatchObject({ totalRequests: paths.length, inFlight: 0 });
    });

    it("keeps its place until the last byte, and hears the answer once", async () => {
      let finish: (() => void) | undefined;
      await using site = await localSite(HERE, (_request, response) => {
        response.writeHead(429, { "retry-after": "2" }).write("pa");
        finish = () => response.end("ge");
      });
      const { polite } = composed(ONE, [], fetch);
      const response = await polite.fetch(site.origin);
      expect(polite.stats(HERE)).toMatchObject({ inFlight: 1, throttledRequests: 1 });
      finish?.();
      expect(await response.text()).toBe("page");
      expect(polite.stats(HERE)).toMatchObject({ inFlight: 0, throttledRequests: 1 });
    });

    it("frees its place at once when the body is not wanted", async () => {
      await using site = await localSite(HERE, (_request, response) => response.writeHead(200).write("pa"));
      const { polite } = composed(ONE, [], fetch);
      const response = await polite.fetch(site.origin);
      expect(polite.stats(HERE)).toMatchObject({ inFlight: 1 });
      await response.body?.cancel();
      expect(polite.stats(HERE)).toMatchObject({ inFlight: 0 });
    });

    it("ends in time, also while an interceptor repeats it", async () => {
      await using site = await localSite(HERE, (_request, response, index) => {
        if (index === 0) response.writeHead(500).end();
      });
      const { clock, polite } = composed(ONE, [retry], fetch);
      const answer = polite.fetch(site.origin, { politely: { timeout: "20s" } });
      const failure = answer.catch((error: unknown) => error);
      await until(() => site.seen.length === 2);
      await clock.advance(20_000);
      await failure;
      await until(() => polite.stats(HERE)?.inFlight === 0);
      expect(clock.pendingTimers).toBe(0);
    });
  },
);

describe("a request that somebody else sends while one of polite.fetch is under way", () => {
  it("is counted although it has the same URL", async () => {
    await using site = await localSite(HERE, (_request, response) => void setTimeout(() => response.end("page"), 50));
    const clock = new VirtualClock();
    const polite = politely({ hosts: { [HERE]: { window: "1/3s" } } }, { clock });
    const dispatcher = new Agent().compose(politeInterceptor(polite));
    // By the platform's own dispatcher, which nobody paces.
    const own = polite.fetch(site.origin);
    await until(() => site.seen.length === 1);
    const other = request(site.origin, { dispatcher });
    expect(await (await own).text()).toBe("page");
    expect(polite.stats(HERE)).toMatchObject({ totalRequests: 1, waiting: 1 });
    await clock.advance(3_000);
    expect(await (await other).body.text()).toBe("page");
    expect(polite.stats(HERE)).toMatchObject({ totalRequests: 2 });
  });

  it.each([HERE, THERE])("is counted although options.fetch sends it, to %s", async (address) => {
    await using here = await localSite(HERE, (_request, response) => response.end("page"));
    await using there = await localSite(THERE, (_request, response) => response.end("token"));
    const token = address === HERE ? `${here.origin}/token` : there.origin;
    const limits = { concurrency: 1 };
    const polite: Limiter = politely(
      { hosts: { [HERE]: limits, [THERE]: limits } },
      {
        fetch: async (input, init) => {
          await (await request(token, { dispatcher })).body.dump();
          return undiciFetch(input as string, { ...init, dispatcher } as object) as unknown as Promise<Response>;
        },
      },
    );
    const dispatcher = new Agent().compose(politeInterceptor(polite));
    expect(await (await polite.fetch(here.origin)).text()).toBe("page");
    const counts = [HERE, THERE].map((host) => polite.stats(host)?.totalRequests ?? 0);
    expect(counts).toEqual(address === HERE ? [2, 0] : [1, 1]);
    expect(polite.stats(HERE)).toMatchObject({ inFlight: 0 });
  });
});

describe("axios by its fetch adapter, over a global dispatcher of the same limiter", () => {
  it("counts each request once, also at concurrency 1", async () => {
    await using site = await localSite(HERE, ({ url }, response) => {
      if (url === "/from") response.writeHead(302, { location: "/to" }).end();
      else response.end("page");
    });
    const polite = politely(ONE);
    const before = getGlobalDispatcher();
    setGlobalDispatcher(new Agent().compose(politeInterceptor(polite)));
    try {
      const client = politeAxios(axios.create({ adapter: "fetch" }), polite);
      expect((await client.get(`${site.origin}/to`)).data).toBe("page");
      expect((await client.get(`${site.origin}/from`)).data).toBe("page");
    } finally {
      setGlobalDispatcher(before);
    }
    expect(polite.stats(HERE)?.totalRequests).toBe(site.seen.length);
    expect(polite.stats(HERE)).toMatchObject({ inFlight: 0 });
  });
});
