import "./register/builtIn.js";
import { AsyncLocalStorage } from "node:async_hooks";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { once } from "node:events";
import { createServer } from "node:net";
import { PassThrough, Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { Agent, Client, type Dispatcher, interceptors, Pool, RetryAgent, request, fetch as undiciFetch } from "undici";
import { describe, expect, it } from "vitest";
import { politeInterceptor } from "../../../src/http/undici/index.js";
import { limit, type PolicyInput, politely } from "../../../src/index.js";
import { VirtualClock } from "../../../src/testing/index.js";
import { type LocalSite, localSite } from "../fetch/localSite.js";
import { builtInAgent, builtInFetch } from "./register/builtIn.js";

const HERE = "127.0.0.2";
const THERE = "127.0.0.3";
const GAP_MS = 10_000;

/** A limiter on virtual time, and an agent of undici that is paced by it. */
function paced(policy: PolicyInput = { hosts: { [HERE]: { minDelay: GAP_MS } } }) {
  const clock = new VirtualClock();
  const polite = politely(policy, { clock });
  const agent = new Agent();
  return { clock, polite, agent, dispatcher: agent.compose(politeInterceptor(polite)) };
}

/** Waits for real sockets, at most five seconds. */
async function until(isTrue: () => boolean): Promise<void> {
  for (let turn = 0; turn < 1_000 && !isTrue(); turn++) await new Promise((resolve) => setTimeout(resolve, 5));
  expect(isTrue()).toBe(true);
}

/** Every way of undici to ask for a page. */
const ways: Record<string, (dispatcher: Dispatcher, origin: string) => Promise<string>> = {
  request: async (dispatcher, origin) => (await request(`${origin}/a`, { dispatcher })).body.text(),
  "dispatcher.request": async (dispatcher, origin) =>
    (await dispatcher.request({ origin, path: "/a", method: "GET" })).body.text(),
  stream: async (dispatcher, origin) => {
    const sink = new PassThrough();
    const whole = text(sink);
    await dispatcher.stream({ origin, path: "/a", method: "GET" }, () => sink);
    return whole;
  },
  pipeline: async (dispatcher, origin) => {
    const duplex = dispatcher.pipeline({ origin, path: "/a", method: "GET" }, ({ body }) => body);
    duplex.end();
    return text(duplex);
  },
  fetch: async (dispatcher, origin) => (await undiciFetch(`${origin}/a`, { dispatcher })).text(),
};

function page(site: LocalSite): string {
  return `${site.origin}/a`;
}

describe("politeInterceptor", () => {
  it.each(Object.entries(ways))("paces %s and changes nothing of its answer", async (_name, ask) => {
    await using site = await localSite(HERE, (_request, response, index) => response.end(`page ${index}`));
    const { clock, polite, agent, dispatcher } = paced();
    expect(await ask(dispatcher, site.origin)).toBe("page 0");
    const second = ask(dispatcher, site.origin);
    await clock.advance(GAP_MS - 1);
    expect([site.seen.length, polite.stats(HERE)?.waiting]).toEqual([1, 1]);
    await clock.advance(1);
    expect(await second).toBe("page 1");
    expect(polite.stats(HERE)).toMatchObject({ totalRequests: 2, inFlight: 0, waiting: 0 });
    await agent.close();
  });

  it("paces Node's own fetch, whichever undici is built in", async () => {
    expect(builtInAgent()).not.toBeInstanceOf(Agent);
    await using site = await localSite(HERE, (_request, response, index) => response.end(`page ${index}`));
    const { clock, polite } = paced();
    const agent = builtInAgent();
    const dispatcher = agent.compose(politeInterceptor(polite));
    expect(await (await builtInFetch(page(site), { dispatcher })).text()).toBe("page 0");
    const second = builtInFetch(page(site), { dispatcher });
    await clock.advance(GAP_MS - 1);
    expect(site.seen.length).toBe(1);
    await clock.advance(1);
    expect(await (await second).text()).toBe("page 1");
    expect(polite.stats(HERE)).toMatchObject({ totalRequests: 2, inFlight: 0, waiting: 0 });
    await agent.close();
  });

  it("hears a 429 as soon as its headers are there, though the body goes on", async () => {
    await using site = await localSite(HERE, (_request, response) => {
      response.writeHead(429, { "retry-after": "30" });
      response.write("too ");
    });
    const { polite, agent, dispatcher } = paced();
    const { statusCode, body } = await request(page(site), { dispatcher });
    expect(statusCode).toBe(429);
    expect(polite.stats(HERE)).toMatchObject({ inFlight: 1, throttledRequests: 1, cooldownMs: 30_000 });
    body.on("error", () => undefined).destroy();
    await agent.destroy();
    expect(polite.stats(HERE)).toMatchObject({ inFlight: 0, cooldownMs: 30_000 });
  });

  it("hears the headers that Node's own fetch gets", async () => {
    await using site = await localSite(HERE, (_request, response) => {
      response.writeHead(503, { "Retry-After": "7" }).end();
    });
    const { polite } = paced();
    const agent = builtInAgent();
    await builtInFetch(page(site), { dispatcher: agent.compose(politeInterceptor(polite)) });
    expect(polite.stats(HERE)).toMatchObject({ throttledRequests: 1, cooldownMs: 7_000 });
    await agent.close();
  });

  it("keeps the place until the last byte", async () => {
    let finish = (): void => undefined;
    await using site = await localSite(HERE, (_request, response) => {
      response.write("first ");
      finish = () => response.end("last");
    });
    const { polite, agent, dispatcher } = paced({ hosts: { [HERE]: { concurrency: 1 } } });
    const { body } = await request(page(site), { dispatcher });
    expect(polite.stats(HERE)?.inFlight).toBe(1);
    finish();
    expect(await body.text()).toBe("first last");
    expect(polite.stats(HERE)?.inFlight).toBe(0);
    await agent.close();
  });

  it("sends the body of a POST, a stream too, after its wait", async () => {
    await using site = await localSite(HERE, (_request, response) => response.end());
    const { clock, agent, dispatcher } = paced();
    await request(page(site), { dispatcher, method: "POST", body: "one" });
    const second = request(page(site), { dispatcher, method: "POST", body: Readable.from(["t", "wo"]) });
    await clock.advance(GAP_MS);
    await second;
    const third = undiciFetch(page(site), { dispatcher, method: "PUT", body: "three" });
    await clock.advance(GAP_MS);
    await third;
    expect(site.seen.map(({ method, body }) => `${method} ${body}`)).toEqual(["POST one", "POST two", "PUT three"]);
    await agent.close();
  });

  it.each([
    ["HEAD", 200],
    ["GET", 204],
    ["GET", 304],
  ] as const)("frees the place after a %s answered with %i, which has no body", async (method, status) => {
    await using site = await localSite(HERE, (_request, response) => response.writeHead(status).end());
    const { polite, agent, dispatcher } = paced({ hosts: { [HERE]: { concurrency: 1 } } });
    for (let count = 0; count < 3; count++) {
      const { statusCode, body } = await request(page(site), { dispatcher, method });
      await body.dump();
      expect(statusCode).toBe(status);
    }
    expect(polite.stats(HERE)).toMatchObject({ totalRequests: 3, inFlight: 0 });
    await agent.close();
  });

  it("takes a 103 for no answer", async () => {
    await using site = await localSite(HERE, (_request, response) => {
      response.writeEarlyHints({ link: "</style.css>; rel=preload" });
      response.writeHead(429, { "retry-after": "5" }).end("no");
    });
    const { polite, agent, dispatcher } = paced({ hosts: { [HERE]: { concurrency: 1 } } });
    const seen: number[] = [];
    const onInfo = ({ statusCode }: { statusCode: number }): void => void seen.push(statusCode);
    const { statusCode, body } = await dispatcher.request({ origin: site.origin, path: "/a", method: "GET", onInfo });
    await body.dump();
    expect([...seen, statusCode]).toEqual([103, 429]);
    expect(polite.stats(HERE)).toMatchObject({ throttledRequests: 1, inFlight: 0, cooldownMs: 5_000 });
    await agent.close();
  });

  it("paces each redirect of fetch under its own host", async () => {
    await using there = await localSite(THERE, (_request, response) => response.end("there"));
    await using here = await localSite(HERE, (_request, response) => {
      response.writeHead(302, { location: page(there) }).end();
    });
    const limits = { minDelay: GAP_MS };
    const { clock, polite, agent, dispatcher } = paced({ hosts: { [HERE]: limits, [THERE]: limits } });
    expect(await (await undiciFetch(page(here), { dispatcher })).text()).toBe("there");
    polite.reset(HERE);
    const second = undiciFetch(page(here), { dispatcher });
    await until(() => polite.stats(THERE)?.waiting === 1);
    expect(there.seen.length).toBe(1);
    await clock.advance(GAP_MS);
    expect(await (await second).text()).toBe("there");
    expect([polite.stats(HERE)?.totalRequests, polite.stats(THERE)?.totalRequests]).toEqual([2, 2]);
    await agent.close();
  });

  it("leaves no listener behind with each of many redirects", async () => {
    await using site = await localSite(HERE, (_request, response, index) => {
      if (index < 15) response.writeHead(302, { location: `/${index}` }).end();
      else response.end("at last");
    });
    const { polite } = paced({ hosts: { [HERE]: { concurrency: 1 } } });
    const agent = builtInAgent();
    const warnings: Error[] = [];
    const onWarning = (warning: Error): void => void warnings.push(warning);
    process.on("warning", onWarning);
    const dispatcher = agent.compose(politeInterceptor(polite));
    const { signal } = new AbortController();
    expect(await (await builtInFetch(page(site), { dispatcher, signal })).text()).toBe("at last");
    await new Promise((resolve) => setImmediate(resolve));
    process.off("warning", onWarning);
    expect([polite.stats(HERE)?.totalRequests, warnings]).toEqual([16, []]);
    await agent.close();
  });

  it("keeps the caller's async context over the wait", async () => {
    await using site = await localSite(HERE, (_request, response) => response.end());
    const { clock, agent, dispatcher } = paced();
    const storage = new AsyncLocalStorage<string>();
    const found: unknown[] = [];
    const onCreate = (): void => void found.push(storage.getStore());
    subscribe("undici:request:create", onCreate);
    const asked = ["first", "second"].map((name) => storage.run(name, () => request(page(site), { dispatcher })));
    await asked[0];
    await clock.advance(GAP_MS);
    await asked[1];
    unsubscribe("undici:request:create", onCreate);
    expect(found).toEqual(["first", "second"]);
    await agent.close();
  });

  it("paces what a later interceptor repeats, and hears the answer in between", async () => {
    await using site = await localSite(HERE, (_request, response, index) => {
      response.writeHead(index === 0 ? 500 : 200).end("page");
    });
    const clock = new VirtualClock();
    const polite = politely({ hosts: { [HERE]: { concurrency: 1, backoff: "none", minDelay: GAP_MS } } }, { clock });
    const agent = new Agent();
    const retry = interceptors.retry({ minTimeout: 1, throwOnError: false });
    const dispatcher = agent.compose(politeInterceptor(polite), retry);
    const whole = request(page(site), { dispatcher }).then(({ body }) => body.text());
    await until(() => polite.stats(HERE)?.waiting === 1);
    expect(site.seen.length).toBe(1);
    await clock.advance(GAP_MS);
    expect(await whole).toBe("page");
    expect(polite.stats(HERE)).toMatchObject({ totalRequests: 2, inFlight: 0 });
    await agent.close();
  });

  it("hands over the history of redirects when it stands behind the redirect interceptor", async () => {
    await using site = await localSite(HERE, (_request, response, index) => {
      if (index === 0) response.writeHead(302, { location: "/b" }).end();
      else response.end("b");
    });
    const { polite, agent } = paced({ hosts: { [HERE]: { concurrency: 1 } } });
    const dispatcher = agent.compose(interceptors.redirect({ maxRedirections: 3 }), politeInterceptor(polite));
    const { body, context } = await request(page(site), { dispatcher });
    expect(await body.text()).toBe("b");
    expect(context).toMatchObject({ history: [new URL(page(site)), new URL(`${site.origin}/b`)] });
    await agent.close();
  });

  it("works with a Client and a Pool once it is told their site, and says so before", async () => {
    await using site = await localSite(HERE, (_request, response) => response.end("page"));
    const polite = politely({ hosts: { [HERE]: { concurrency: 1 } } });
    for (const base of [new Client(site.origin), new Pool(site.origin)]) {
      const dispatcher = base.compose(politeInterceptor(polite, { origin: site.origin }));
      expect(await (await dispatcher.request({ path: "/a", method: "GET" })).body.text()).toBe("page");
      const unknown = base.compose(politeInterceptor(polite));
      await expect(unknown.request({ path: "/a", method: "GET" })).rejects.toThrow(
        /politeInterceptor\(limiter, \{ origin/,
      );
      await base.close();
    }
    expect(polite.stats(HERE)).toMatchObject({ asked: 2, totalRequests: 2, inFlight: 0 });
  });

  it("paces every host by one key with a limiter of one key", async () => {
    await using here = await localSite(HERE, (_request, response) => response.end("here"));
    await using there = await localSite(THERE, (_request, response) => response.end("there"));
    const clock = new VirtualClock();
    const one = limit({ minDelay: GAP_MS }, { clock });
    const agent = new Agent();
    const dispatcher = agent.compose(politeInterceptor(one));
    await request(page(here), { dispatcher });
    const second = request(page(there), { dispatcher });
    await clock.settle();
    expect(there.seen.length).toBe(0);
    await clock.advance(GAP_MS);
    await second;
    expect(one.stats().totalRequests).toBe(2);
    await agent.close();
  });

  it("frees the place when the socket of an upgrade or a CONNECT is handed over", async () => {
    const tunnel = createServer((socket) => {
      socket.once("data", (head) => {
        const isConnect = head.toString().startsWith("CONNECT");
        socket.write(
          isConnect
            ? "HTTP/1.1 200 OK\r\n\r\n"
            : "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\n",
        );
        socket.pipe(socket);
      });
    }).listen(0, HERE);
    await once(tunnel, "listening");
    const { port } = tunnel.address() as { port: number };
    const origin = `http://${HERE}:${port}`;
    const { polite, agent, dispatcher } = paced({ hosts: { [HERE]: { concurrency: 1 } } });
    const first = await dispatcher.upgrade({ origin, path: "/", method: "GET", protocol: "echo" } as never);
    const second = await dispatcher.connect({ origin, path: "example.org:443" });
    for (const { socket } of [first, second]) {
      socket.write("hello");
      expect(String((await once(socket, "data"))[0])).toBe("hello");
      socket.on("error", () => undefined).destroy();
    }
    expect(polite.stats(HERE)).toMatchObject({ totalRequests: 2, inFlight: 0 });
    await agent.destroy();
    tunnel.close();
  });

  it("sends the policy's User-Agent unless the program has its own", async () => {
    await using site = await localSite(HERE, (_request, response) => response.end());
    const { polite, agent, dispatcher } = paced({
      hosts: { [HERE]: { concurrency: 4 } },
      http: { userAgent: "Archive/1.0", contact: "me@example.org" },
    });
    const headers = { accept: "text/html" };
    await request(page(site), { dispatcher, headers });
    await request(page(site), { dispatcher, headers: ["accept", "text/html"] });
    await request(page(site), { dispatcher, headers: new Map(Object.entries(headers)) });
    await undiciFetch(page(site), { dispatcher, headers });
    await request(page(site), { dispatcher, headers: { ...headers, "User-Agent": "Mine/2" } });
    await undiciFetch(page(site), { dispatcher, headers: { ...headers, "user-agent": "Mine/2" } });
    const own = "Archive/1.0 (+me@example.org)";
    expect(site.seen.map((seen) => seen.headers["user-agent"])).toEqual([own, own, own, own, "Mine/2", "Mine/2"]);
    expect(site.seen.map((seen) => seen.headers.accept)).toEqual(Array.from({ length: 6 }, () => "text/html"));
    expect(polite.stats(HERE)?.inFlight).toBe(0);
    await agent.close();
  });

  it("obeys robots.txt, and fetches it through the very dispatcher that it paces", async () => {
    await using site = await localSite(HERE, (asked, response) => {
      response.end(asked.url === "/robots.txt" ? "User-agent: *\nDisallow: /private" : "page");
    });
    const agent = builtInAgent();
    let dispatcher: Dispatcher = agent;
    const polite = politely(
      { hosts: { [HERE]: { concurrency: 1 } }, http: { userAgent: "Archive/1.0", robots: true } },
      { fetch: (url, init) => builtInFetch(url as string, { ...init, dispatcher } as never) as never },
    );
    dispatcher = agent.compose(politeInterceptor(polite));
    expect(await (await builtInFetch(page(site), { dispatcher })).text()).toBe("page");
    const refused = builtInFetch(`${site.origin}/private/1`, { dispatcher });
    await expect(refused).rejects.toMatchObject({ cause: { code: "POLITELY_ROBOTS" } });
    expect(site.seen.map(({ url }) => url)).toEqual(["/robots.txt", "/a"]);
    expect(polite.stats(HERE)).toMatchObject({ totalRequests: 2, inFlight: 0, waiting: 0 });
    await agent.close();
  });

  it("takes the request's own way to wait from its options", async () => {
    await using site = await localSite(HERE, (_request, response) => response.end());
    const { agent, dispatcher } = paced();
    await request(page(site), { dispatcher });
    const options = { dispatcher, politely: { maxWait: 100 } };
    await expect(request(page(site), options)).rejects.toMatchObject({ code: "POLITELY_DEADLINE", waitMs: GAP_MS });
    await agent.close();
  });

  it("neither counts twice nor waits for itself when two of one limiter stand behind each other", async () => {
    await using site = await localSite(HERE, (_request, response, index) => {
      response.writeHead(index === 0 ? 503 : 200).end("page");
    });
    const polite = politely({ hosts: { [HERE]: { concurrency: 1, backoff: "none" } } });
    const agent = new Agent();
    const inner = agent.compose(politeInterceptor(polite));
    const between = new RetryAgent(inner, { minTimeout: 1 });
    const dispatcher = between.compose(politeInterceptor(polite));
    const { body } = await request(page(site), { dispatcher });
    expect(await body.text()).toBe("page");
    expect(polite.stats(HERE)).toMatchObject({ totalRequests: 2, granted: 2, inFlight: 0 });
    await agent.close();
  });

  it("needs a limiter", () => {
    expect(() => politeInterceptor({} as never)).toThrow(/politeInterceptor needs a limiter made by politely\(\)/);
  });
});
