import { AsyncLocalStorage } from "node:async_hooks";
import { once } from "node:events";
import http, {
  Agent,
  type ClientRequest,
  createServer,
  get,
  type IncomingMessage,
  type RequestOptions,
  request,
} from "node:http";
import https from "node:https";
import { type AddressInfo, connect } from "node:net";
import { type Duplex, Readable } from "node:stream";
import { buffer, text } from "node:stream/consumers";
import { pipeline } from "node:stream/promises";
import { HttpsProxyAgent } from "https-proxy-agent";
import { describe, expect, it } from "vitest";
import { type Exchange, exchangeOf } from "../../../src/http/exchange.js";
import { type NodeHttp, paceAllAgents } from "../../../src/http/node/agents.js";
import { paceRequest } from "../../../src/http/node/paceRequest.js";
import { politeInterceptor } from "../../../src/http/undici/index.js";
import { type Limiter, type Limits, type PolicyInput, politely } from "../../../src/index.js";
import { type HttpWorld, inHttpWorld, openBody, pause, reply, until } from "../../../src/testing/httpWorld.js";

type World = HttpWorld<undefined>;

/** Whose limiter paces this process at the moment. */
let exchange: Exchange | undefined;
paceAllAgents(http as unknown as NodeHttp, (sent, connection, proceed) => {
  if (exchange === undefined) proceed();
  else paceRequest(exchange, sent, connection, proceed);
});

async function play(
  run: (world: World) => Promise<void>,
  limits: Limits = { concurrency: 1, backoff: "none" },
  http?: PolicyInput["http"],
) {
  try {
    await inHttpWorld(
      {
        makeLimiter: politely,
        makeClient(limiter: Limiter) {
          exchange = exchangeOf(limiter, "a test");
          return undefined;
        },
        policy: (a, b) => ({ hosts: { [a]: limits, [b]: limits }, ...(http && { http }) }),
      },
      run,
    );
  } finally {
    exchange = undefined;
  }
}

async function read(sent: ClientRequest): Promise<string> {
  const [answer] = (await once(sent, "response")) as [IncomingMessage];
  return text(answer);
}

const outcomes = ({ events }: World): string[] =>
  events.flatMap((event) => (event.type === "release" ? [event.outcome] : []));

/** Writes down how a request ends. */
function watch(sent: ClientRequest): { readonly seen: unknown[]; readonly closed: Promise<unknown> } {
  const seen: unknown[] = [];
  for (const event of ["abort", "error", "timeout", "response", "socket"]) {
    sent.on(event, (error?: Error & { code?: string }) => {
      seen.push(event === "error" ? [event, error?.name, error?.code, error?.message] : event);
    });
  }
  const closed = new Promise((resolve) => {
    sent.on("close", () => {
      seen.push(["close", sent.destroyed, sent.aborted]);
      resolve(undefined);
    });
  });
  return { seen, closed };
}

/** The ways to give a request up. */
const WAYS: Record<string, (sent: ClientRequest, controller: AbortController) => unknown> = {
  "destroy()": (sent) => sent.destroy(),
  "destroy(error)": (sent) => sent.destroy(Object.assign(new Error("enough"), { code: "OWN" })),
  "abort()": (sent) => sent.abort(),
  "its signal": (_sent, controller) => controller.abort(),
  "destroy() twice": (sent) => sent.destroy().destroy(new Error("late")),
};

/** Gives up a request that waits behind another one, in whichever queue there is. */
async function giveUp(origin: string, way: (typeof WAYS)[string], agent: Agent): Promise<unknown[]> {
  const controller = new AbortController();
  const waiting = request(`${origin}/second`, { agent, method: "POST", signal: controller.signal });
  const { seen, closed } = watch(waiting);
  waiting.write("some");
  await pause(10);
  way(waiting, controller);
  await pause(10);
  return [seen, closed];
}

describe("a request of node:http that waits for the limiter", () => {
  it.each(Object.entries(WAYS))(
    "ends by %s as one that waits for its agent, takes nothing, and leaves at once",
    (_name, way) =>
      play(async ({ limiter, a }) => {
        const paced = exchange;
        const ends: unknown[][] = [];
        for (const isPaced of [false, true]) {
          exchange = isPaced ? paced : undefined;
          const agent = new Agent(isPaced ? {} : { maxSockets: 1 });
          const body = openBody(a, 200);
          const first = read(get(a.origin, { agent }));
          const seenBefore = a.requests.length;
          await until("the site was asked", () => a.requests.length === seenBefore + 1);
          const [seen, closed] = await giveUp(a.origin, way, agent);
          if (isPaced) {
            await closed;
            expect(limiter.stats(a.key)).toMatchObject({ waiting: 0, granted: 1, cancelled: 1, inFlight: 1 });
          }
          body().end();
          await first;
          await closed;
          ends.push(seen as unknown[]);
          agent.destroy();
        }
        expect(ends[1]).toEqual(ends[0]);
        expect(ends[0]).not.toEqual([]);
        expect(a.requests).toHaveLength(2);
      }),
  );

  it("is refused by an error event, as a connection that cannot be had", () =>
    play(
      async ({ a, limiter }) => {
        const body = openBody(a, 200);
        const first = read(get(a.origin));
        await until("the site was asked", () => a.requests.length === 1);
        const refused = get(a.origin);
        const { seen, closed } = watch(refused);
        expect(seen).toEqual([]);
        await closed;
        expect(seen).toEqual([
          ["error", "DeadlineError", "POLITELY_DEADLINE", expect.any(String)],
          ["close", true, false],
        ]);
        body().end();
        await first;
        expect(limiter.stats(a.key)).toMatchObject({ granted: 1, refused: 1 });
      },
      { concurrency: 1, maxWait: 0 },
    ));

  it("is refused later in the same way, when robots.txt forbids it", () =>
    play(
      async ({ a }) => {
        a.answer = (_request, answer) => reply(answer, 200, {}, "User-agent: *\nDisallow: /private");
        const { seen, closed } = watch(get(`${a.origin}/private`));
        await closed;
        expect(seen).toEqual([
          ["error", "RobotsError", "POLITELY_ROBOTS", expect.any(String)],
          ["close", true, false],
        ]);
        expect(a.requests.map(({ url }) => url)).toEqual(["/robots.txt"]);
      },
      { concurrency: 1 },
      { robots: true, userAgent: "Archive/1.0" },
    ));

  it("does not count the wait towards its timeouts, and keeps what is written", () =>
    play(
      async ({ a }) => {
        a.answer = (message, answer) =>
          void (message as unknown as IncomingMessage).pipe(answer as unknown as NodeJS.WritableStream);
        const sent = [1, 2, 3].map((number) => {
          const each = request(a.origin, { method: "POST", timeout: 200 });
          each.setTimeout(200);
          each.on("timeout", () => each.destroy(new Error("late")));
          each.write(`${number}`);
          each.end("!");
          return read(each);
        });
        expect(await Promise.all(sent)).toEqual(["1!", "2!", "3!"]);
      },
      { minDelay: 250 },
    ));

  it("keeps the caller's async context", () =>
    play(
      async ({ a }) => {
        const context = new AsyncLocalStorage<number>();
        const seen = await Promise.all(
          [1, 2].map((number) =>
            context.run(number, async () => {
              const sent = get(a.origin);
              return new Promise((resolve) =>
                sent.on("response", (answer) => {
                  answer.resume();
                  resolve(context.getStore());
                }),
              );
            }),
          ),
        );
        expect(seen).toEqual([1, 2]);
      },
      { minDelay: 20 },
    ));
});

describe("a request of node:http under way", () => {
  it("is heard at its headers, and keeps its place until its last byte", () =>
    play(async (world) => {
      const { a, limiter } = world;
      const body = openBody(a, 429, { "retry-after": "7" });
      const sent = get(a.origin);
      const answer = read(sent);
      await until("the host cools down", () => (limiter.stats(a.key)?.cooldownMs ?? 0) > 6_000);
      expect(limiter.stats(a.key)?.inFlight).toBe(1);
      body().end("slow down");
      expect(await answer).toBe("slow down");
      expect(limiter.stats(a.key)?.inFlight).toBe(0);
      expect(outcomes(world)).toEqual(["neutral"]);
    }));

  it("has its answer dumped by Node when nobody listens for it", () =>
    play(async (world) => {
      const { a, limiter } = world;
      const sent = get(a.origin);
      expect([sent.listenerCount("response"), sent.listenerCount("close"), sent.listenerCount("error")]).toEqual([
        0, 0, 0,
      ]);
      await once(sent, "close");
      await until("the place is free", () => limiter.stats(a.key)?.inFlight === 0);
      expect(outcomes(world)).toEqual(["neutral"]);
    }));

  it.each<[string, string, (sent: ClientRequest, site: World["a"]) => unknown]>([
    ["is given up", "neutral", (sent) => sent.destroy()],
    ["is given up after its timeout", "timeout", (sent) => sent.setTimeout(10, () => sent.destroy())],
    ["is given up with an error of the program", "neutral", (sent) => sent.destroy(new Error("enough"))],
    ["is reset by the site", "server_error", (_sent, { requests }) => requests[0].socket.resetAndDestroy()],
  ])("that %s before its answer counts as %s", (_name, outcome, act) =>
    play(async (world) => {
      const { a } = world;
      openBody(a, undefined);
      const sent = get(a.origin);
      sent.on("error", () => undefined);
      await until("the site was asked", () => a.requests.length === 1);
      const { closed } = watch(sent);
      act(sent, a);
      await closed;
      expect(outcomes(world)).toEqual([outcome]);
    }),
  );

  it.each<[string, string, (answer: IncomingMessage, site: World["a"]) => unknown]>([
    ["the program drops it", "neutral", (answer) => answer.destroy()],
    // Once the headers are there, the status alone counts.
    ["the site tears it off", "neutral", (_answer, { requests }) => requests[0].socket.destroy()],
  ])("whose answer ends when %s counts as %s", (_name, outcome, act) =>
    play(async (world) => {
      const { a } = world;
      a.answer = (_request, answer) => {
        answer.writeHead(200, { "content-length": "100" }).flushHeaders();
        answer.write("half");
      };
      const sent = get(a.origin);
      const { closed } = watch(sent);
      const [answer] = (await once(sent, "response")) as [IncomingMessage];
      answer.on("error", () => undefined);
      answer.resume();
      act(answer, a);
      await closed;
      expect(outcomes(world)).toEqual([outcome]);
    }),
  );

  it("takes a connection that is refused for trouble of the site", () =>
    play(async (world) => {
      const { b } = world;
      await b.close();
      const { seen, closed } = watch(get(b.origin));
      await closed;
      expect(seen).toContainEqual(["error", "Error", "ECONNREFUSED", expect.any(String)]);
      expect(outcomes(world)).toEqual(["server_error"]);
    }));

  it("takes a large upload by and by, also one that was begun while it waited", () =>
    play(
      async ({ a }) => {
        a.answer = (message, answer) =>
          void buffer(message as unknown as IncomingMessage).then(({ length }) =>
            reply(answer, 200, {}, String(length)),
          );
        const send = async () => {
          const sent = request(a.origin, { method: "PUT" });
          const answer = read(sent);
          const chunks = Array.from({ length: 80 }, () => Buffer.alloc(65_536));
          await pipeline(Readable.from(chunks), sent);
          return answer;
        };
        expect(await Promise.all([send(), send()])).toEqual(["5242880", "5242880"]);
      },
      { minDelay: 50 },
    ));

  it("is paced by https as well", () =>
    play(async (world) => {
      const { a } = world;
      const { seen, closed } = watch(https.get(a.origin.replace("http:", "https:")));
      await closed;
      // There is no TLS at the other end, and only somebody who tries TLS finds that out.
      expect(seen).toContainEqual(["error", "Error", expect.stringMatching(/EPROTO|ERR_SSL/), expect.any(String)]);
      expect(outcomes(world)).toEqual(["server_error"]);
    }));

  it("waits for a 100 before it sends its body", () =>
    play(
      async ({ a }) => {
        a.answer = (message, answer) =>
          void (message as unknown as IncomingMessage).pipe(answer as unknown as NodeJS.WritableStream);
        const send = async () => {
          const sent = request(a.origin, { method: "PUT", headers: { expect: "100-continue" } });
          sent.flushHeaders();
          await once(sent, "continue");
          sent.end("body");
          return read(sent);
        };
        expect(await Promise.all([send(), send()])).toEqual(["body", "body"]);
      },
      { minDelay: 30 },
    ));

  it("hands the socket over at an upgrade, and frees its place", () =>
    play(async (world) => {
      const { a, limiter } = world;
      a.answer = ({ socket }) =>
        void (socket as unknown as Duplex).write(
          "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\nhello",
        );
      for (const round of [1, 2]) {
        const sent = get(a.origin, { headers: { connection: "upgrade", upgrade: "echo" } });
        const [answer, socket, head] = (await once(sent, "upgrade")) as [IncomingMessage, Duplex, Buffer];
        expect([answer.statusCode, String(head)]).toEqual([101, "hello"]);
        expect(limiter.stats(a.key)).toMatchObject({ granted: round, inFlight: 0 });
        socket.destroy();
      }
    }));

  it("reuses the connections of its agent, and respects its bound", () =>
    play(
      async ({ a, events }) => {
        const agent = new Agent({ keepAlive: true, maxSockets: 1 });
        await Promise.all([1, 2, 3].map(() => read(get(a.origin, { agent }))));
        const last = get(a.origin, { agent });
        await read(last);
        expect(last.reusedSocket).toBe(true);
        expect(new Set(a.requests.map(({ socket }) => socket)).size).toBe(1);
        expect(events.filter(({ type }) => type === "grant")).toHaveLength(4);
        agent.destroy();
      },
      { concurrency: 4 },
    ));

  it("without an agent has one of its own, and a connection of its own is not paced", () =>
    play(async (world) => {
      const { a } = world;
      const ways: RequestOptions[] = [{ agent: false }, { createConnection: (options) => connect(options as never) }];
      for (const options of ways) expect(await read(get(`${a.origin}/x`, options))).toBe("/x");
      expect(outcomes(world)).toEqual(["neutral"]);
    }));

  it("gets the User-Agent of the policy in place of none or a client's, unless its headers are fixed", () =>
    play(
      async ({ a }) => {
        for (const headers of [
          {},
          { "user-agent": "axios/1.20.0" },
          { "User-Agent": "Own/1.0" },
          ["host", "x", "user-agent", "Fixed"],
        ]) {
          await read(get(a.origin, { headers }));
        }
        const agents = a.requests.map(({ headers }) => headers["user-agent"]);
        expect(agents).toEqual(["Archive/1.0", "Archive/1.0", "Own/1.0", "Fixed"]);
      },
      { concurrency: 1 },
      { userAgent: "Archive/1.0" },
    ));

  it("counts at the site behind a proxy, by whichever agent it goes there", () =>
    play(async (world) => {
      const { a, b, events } = world;
      // It answers in the place of a site, or lets through.
      const proxy = createServer((message, answer) => void answer.end(message.url)).listen(0, "127.0.0.4");
      proxy.on("connect", ({ url = "" }: IncomingMessage, socket: Duplex) => {
        const { hostname, port } = new URL(`http://${url}`);
        const onward = connect(Number(port), hostname);
        onward.pipe(socket).pipe(onward);
        socket.write("HTTP/1.1 200 OK\r\n\r\n");
      });
      await once(proxy, "listening");
      const { address, port } = proxy.address() as AddressInfo;
      expect(await read(get({ hostname: address, port, path: `${a.origin}/page` }))).toBe(`${a.origin}/page`);
      const agent = new HttpsProxyAgent(`http://${address}:${port}`);
      const body = openBody(b, 200);
      const first = read(get(b.origin, { agent }));
      await until("the site was asked", () => b.requests.length === 1);
      const second = read(get(b.origin, { agent }));
      await pause(20);
      expect(b.requests).toHaveLength(1);
      body().end();
      await first;
      await until("the site was asked again", () => b.requests.length === 2);
      body().end();
      await second;
      expect(events.flatMap((event) => (event.type === "grant" ? [event.key] : []))).toEqual([a.key, b.key, b.key]);
      proxy.closeAllConnections();
      proxy.close();
    }));

  it("is not held a second time when the limiter itself sends it, as it does for robots.txt", () =>
    inHttpWorld(
      {
        // Where somebody has put a fetch by node:http in the place of the global one.
        makeLimiter: (policy) =>
          politely(policy, { fetch: async (input) => new Response(await read(get(input as string))) }),
        makeClient(limiter: Limiter) {
          politeInterceptor(limiter);
          exchange = exchangeOf(limiter, "a test");
        },
        policy: (a) => ({ hosts: { [a]: { concurrency: 1 } }, http: { robots: true, userAgent: "Archive/1.0" } }),
      },
      async ({ a, limiter }) => {
        a.answer = ({ url }, answer) => reply(answer, 200, {}, url === "/robots.txt" ? "User-agent: *\nAllow: /" : url);
        expect(await read(get(`${a.origin}/page`))).toBe("/page");
        expect(a.requests.map(({ url }) => url)).toEqual(["/robots.txt", "/page"]);
        expect(limiter.stats(a.key)?.granted).toBe(2);
      },
    ).finally(() => {
      exchange = undefined;
    }));
});
