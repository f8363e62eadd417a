import type { LimiterEvent } from "../observe/types.js";
import type { PolicyInput } from "../policy/types.js";
import type { Limiter } from "../types.js";
import { failureOf, type HttpWorld, inHttpWorld, openBody, pause, reply, same, until } from "./httpWorld.js";

/** A client that is made polite, in the form in which the suite calls it. It must not repeat anything by itself. */
export interface HttpClient {
  /** Reads the whole answer, whatever its status. Rejects when there is none. */
  readonly get: (url: string, request?: HttpRequest) => Promise<HttpAnswer>;
  /** The same with a body. */
  readonly post: (url: string, body: string, request?: HttpRequest) => Promise<HttpAnswer>;
  /** Resolves with the headers and leaves the body unread. Absent for a client that lacks "unread bodies". */
  readonly open?: (url: string) => Promise<unknown>;
}

/** What a request of the suite brings along. */
export interface HttpRequest {
  readonly signal?: AbortSignal;
  readonly headers?: Readonly<Record<string, string>>;
  /** The client's own timeout. Default: none. */
  readonly timeoutMs?: number;
}

/** An answer that was read to its end. */
export interface HttpAnswer {
  readonly status: number;
  readonly text: string;
}

/** Something not every client can do: show the headers before the body is there, do without a reader of the body, ask robots.txt first. */
export type HttpFeature = "early headers" | "unread bodies" | "robots";

/** How the suite is run. */
export interface HttpSuiteOptions {
  /** Makes the limiter of each case: pass `politely`. */
  readonly makeLimiter: (policy: PolicyInput) => Limiter;
  /** What the client lacks; the cases about it are left out. Default: nothing. */
  readonly lacks?: readonly HttpFeature[];
}

/** One thing that every polite client does. `run` rejects with what differs. */
export interface HttpCase {
  readonly title: string;
  readonly run: () => Promise<void>;
}

interface Rule {
  readonly title: string;
  readonly needs?: HttpFeature;
  readonly policy: (a: string, b: string) => PolicyInput;
  readonly play: (world: HttpWorld<HttpClient>) => Promise<void>;
}

/**
 * What every polite HTTP client does, as a list of cases for any test runner:
 * `for (const { title, run } of httpSuite("mine", makeClient, { makeLimiter: politely })) it(title, run);`
 *
 * Needs Node: each case starts two sites on 127.0.0.2 and 127.0.0.3 (or two ports of 127.0.0.1), runs in real time for
 * tens of milliseconds, and afterwards nothing is in flight and the books balance.
 */
export function httpSuite(
  name: string,
  makeClient: (limiter: Limiter) => HttpClient,
  { makeLimiter, lacks = [] }: HttpSuiteOptions,
): HttpCase[] {
  return RULES.filter(({ needs }) => needs === undefined || !lacks.includes(needs)).map(({ title, policy, play }) => ({
    title: `${name} ${title}`,
    run: () => inHttpWorld({ makeLimiter, makeClient: (limiter) => quiet(makeClient(limiter)), policy }, play),
  }));
}

const RULES: readonly Rule[] = [
  {
    title: "spaces the starts at one host and leaves another alone",
    policy: (a, b) => ({ hosts: { [a]: { minDelay: 30 }, [b]: { minDelay: 30 } } }),
    play: async ({ a, b, client, events }) => {
      const answers = await Promise.all([
        ...["/1", "/2", "/3"].map((path) => client.get(a.origin + path)),
        client.get(b.origin),
      ]);
      same(
        answers.map(({ status }) => status),
        [200, 200, 200, 200],
        "as statuses",
      );
      same(answers[0].text, "/1", "as body");
      const starts = grantsOf(events, a.key).map(({ atMs }) => atMs);
      const gaps = starts.slice(1).map((atMs, index) => atMs - starts[index]);
      same(
        gaps.map((gap) => gap > 29.999),
        [true, true],
        `as "30 ms or more" for gaps of ${gaps.join(" and ")} ms`,
      );
      same(
        grantsOf(events, b.key).map(({ waitedMs }) => waitedMs),
        [0],
        "as waits at the other host",
      );
    },
  },
  {
    title: "holds the host as soon as the headers of a 429 are there",
    needs: "early headers",
    policy: (a) => ({ hosts: { [a]: { concurrency: 2 } } }),
    play: async ({ a, client, limiter }) => {
      const body = openBody(a, 429, { "retry-after": "7" });
      const answer = client.get(a.origin);
      await until("the host cools down", () => (limiter.stats(a.key)?.cooldownMs ?? 0) > 6_000);
      same(limiter.stats(a.key)?.inFlight, 1, "in flight while the body is open");
      body().end("slow down");
      same(await answer, { status: 429, text: "slow down" }, "as answer");
      same(limiter.stats(a.key)?.throttledRequests, 1, "as throttled requests");
    },
  },
  {
    title: "hears what an answer says, and counts it once",
    policy: (a) => ({ hosts: { [a]: { concurrency: 2 } } }),
    play: async ({ a, client, limiter }) => {
      same((await client.get(a.origin)).status, 200, "as first status");
      a.answer = (_request, answer) => reply(answer, 429, { "retry-after": "7" });
      same((await client.get(a.origin)).status, 429, "as second status");
      const { totalRequests, throttledRequests, cooldownMs } = limiter.stats(a.key) ?? {};
      same([totalRequests, throttledRequests], [2, 1], "as requests and throttled ones");
      same((cooldownMs ?? 0) > 6_000, true, `as "more than 6 s" for a cooldown of ${cooldownMs} ms`);
    },
  },
  {
    title: "keeps its place until the body has ended",
    policy: (a) => ({ hosts: { [a]: { concurrency: 1 } } }),
    play: async ({ a, client, limiter }) => {
      const body = openBody(a, 200);
      const first = client.get(a.origin);
      await until("the site was asked", () => a.requests.length === 1);
      const second = client.get(a.origin);
      await until("the second waits", () => limiter.stats(a.key)?.waiting === 1);
      await pause(10);
      same(a.requests.length, 1, "asked while the first body is open");
      a.answer = (_request, answer) => reply(answer, 200, {}, "second");
      body().end("first");
      same([(await first).text, (await second).text], ["first", "second"], "as bodies");
    },
  },
  {
    title: "leaves the queue when it is aborted, and takes nothing",
    policy: (a) => ({ hosts: { [a]: { concurrency: 1 } } }),
    play: async ({ a, client, limiter }) => {
      const body = openBody(a, 200);
      const first = client.get(a.origin);
      await until("the site was asked", () => a.requests.length === 1);
      const controller = new AbortController();
      const { signal } = controller;
      const second = failureOf(client.get(a.origin, { signal }), "of the aborted request");
      const third = client.get(a.origin);
      await until("two wait", () => limiter.stats(a.key)?.waiting === 2);
      controller.abort();
      await second;
      await until("one waits", () => limiter.stats(a.key)?.waiting === 1);
      a.answer = (_request, answer) => reply(answer, 200, {}, "third");
      body().end("first");
      same([(await first).text, (await third).text], ["first", "third"], "as bodies");
      same([a.requests.length, limiter.stats(a.key)?.totalRequests], [2, 2], "seen and granted");
    },
  },
  {
    title: "frees its place when it is aborted before the answer or in its body, and holds nothing against the site",
    policy: (a) => ({ hosts: { [a]: { concurrency: 1 } } }),
    play: async ({ a, client, limiter }) => {
      for (const status of [undefined, 200]) {
        openBody(a, status);
        const seen = a.requests.length;
        const controller = new AbortController();
        const { signal } = controller;
        const failure = failureOf(client.get(a.origin, { signal }), "of the aborted request");
        await until("the site was asked", () => a.requests.length === seen + 1);
        await pause(10);
        controller.abort();
        await failure;
        a.answer = (_request, answer) => reply(answer, 200);
        same((await client.get(a.origin)).status, 200, "as status of the next request");
        same(limiter.stats(a.key)?.cooldownMs, 0, "ms of cooldown");
      }
    },
  },
  {
    title: "takes a connection that is refused or reset for trouble of the site",
    policy: (a, b) => ({
      hosts: { [a]: { concurrency: 1, backoff: "none" }, [b]: { concurrency: 1, backoff: "none" } },
    }),
    play: async ({ a, b, client, events }) => {
      await b.close();
      await failureOf(client.get(b.origin), "of the refused connection");
      same(outcomesAt(events, b.key), ["server_error"], "as outcomes of the refused connection");
      a.answer = ({ socket }) => void socket.resetAndDestroy();
      await failureOf(client.get(a.origin), "of the reset connection");
      same(outcomesAt(events, a.key), ["server_error"], "as outcomes of the reset connection");
    },
  },
  {
    title: "judges an answer whose body is torn off by its status",
    needs: "early headers",
    policy: (a) => ({ hosts: { [a]: { concurrency: 1 } } }),
    play: async ({ a, client, limiter, events }) => {
      a.answer = ({ socket }, answer) => {
        answer.writeHead(200, { "content-length": "1000" }).flushHeaders();
        answer.write("half");
        setTimeout(() => void socket.destroy(), 10);
      };
      await failureOf(client.get(a.origin), "of the torn body");
      same(outcomesAt(events, a.key), ["neutral"], "as outcomes of the torn body");
      same(limiter.stats(a.key)?.cooldownMs, 0, "ms of cooldown");
    },
  },
  {
    title: "paces each redirect under its own host, and keeps credentials to their origin",
    policy: (a, b) => ({ hosts: { [a]: { minDelay: 5 }, [b]: { minDelay: 5 } } }),
    play: async ({ a, b, client, events }) => {
      a.answer = ({ url }, answer) =>
        reply(answer, url === "/first" ? 302 : 307, { location: url === "/first" ? "/second" : `${b.origin}/third` });
      const headers = { authorization: "Bearer secret", cookie: "id=1", "x-own": "kept" };
      same(await client.get(`${a.origin}/first`, { headers }), { status: 200, text: "/third" }, "as answer");
      same(
        grantsOf(events, undefined).map(({ key }) => key),
        [a.key, a.key, b.key],
        "as hosts in turn",
      );
      same(
        a.requests.map((request) => request.headers.authorization),
        ["Bearer secret", "Bearer secret"],
        "at home",
      );
      const { authorization, cookie, "x-own": own } = b.requests[0].headers;
      same([authorization ?? null, cookie ?? null, own], [null, null, "kept"], "as headers at the other origin");
    },
  },
  {
    title: "makes a GET of a POST that is answered with 303, and sends a POST again after 307",
    policy: (a) => ({ hosts: { [a]: { concurrency: 1 } } }),
    play: async ({ a, client }) => {
      a.answer = ({ url }, answer) =>
        url === "/end" ? reply(answer, 200) : reply(answer, url === "/303" ? 303 : 307, { location: "/end" });
      await client.post(`${a.origin}/303`, "body");
      await client.post(`${a.origin}/307`, "body");
      const seen = a.requests.map(({ method, url, headers }) => [method, url, headers["content-length"] ?? "none"]);
      const expected = [
        ["POST", "/303", "4"],
        ["GET", "/end", "none"],
        ["POST", "/307", "4"],
        ["POST", "/end", "4"],
      ];
      same(seen, expected, "as requests");
    },
  },
  {
    title: "sends the policy's User-Agent unless the caller has one",
    policy: (a) => ({
      hosts: { [a]: { minDelay: 1 } },
      http: { userAgent: "Suite/1.0", contact: "https://suite.example" },
    }),
    play: async ({ a, client }) => {
      await client.get(a.origin);
      await client.get(a.origin, { headers: { "user-agent": "Own/2.0" } });
      const agents = a.requests.map(({ headers }) => headers["user-agent"]);
      same(agents, ["Suite/1.0 (+https://suite.example)", "Own/2.0"], "as User-Agents");
    },
  },
  {
    title: "does not count time in the queue towards the client's timeout, also behind a redirect",
    policy: (a, b) => ({ hosts: { [a]: { minDelay: 250 }, [b]: { minDelay: 250 } } }),
    play: async ({ a, b, client, limiter }) => {
      a.answer = (_request, answer) => reply(answer, 302, { location: `${b.origin}/end` });
      const both = [client.get(a.origin, { timeoutMs: 240 }), client.get(a.origin, { timeoutMs: 240 })];
      const behind = client.get(`${b.origin}/direct`, { timeoutMs: 240 });
      same(
        (await Promise.all([...both, behind])).map(({ status }) => status),
        [200, 200, 200],
        "as statuses",
      );
      same(limiter.stats(b.key)?.totalRequests, 3, "requests at the second host");
    },
  },
  {
    title: "takes an answer that does not come in time for a timeout, and frees its place",
    policy: (a) => ({ hosts: { [a]: { concurrency: 1, backoff: "none" } } }),
    play: async ({ a, client, events }) => {
      openBody(a, undefined);
      await failureOf(client.get(a.origin, { timeoutMs: 40 }), "of the request without an answer");
      same(outcomesAt(events, a.key), ["timeout"], "as outcomes");
    },
  },
  {
    title: "does not keep its place for a small body that nobody reads",
    needs: "unread bodies",
    policy: (a) => ({ hosts: { [a]: { concurrency: 1 } } }),
    play: async ({ a, client }) => {
      if (client.open === undefined) throw new Error('The client has no open(); say that it lacks "unread bodies".');
      const kept = await client.open(a.origin);
      same((await client.get(`${a.origin}/next`)).text, "/next", "as body of the next request");
      same(kept === undefined, false, "as absence of the first answer");
    },
  },
  {
    title: "does not ask for what robots.txt disallows",
    needs: "robots",
    policy: (a) => ({ hosts: { [a]: { minDelay: 1 } }, http: { userAgent: "Suite/1.0", robots: true } }),
    play: async ({ a, client }) => {
      a.answer = ({ url }, answer) =>
        reply(answer, 200, {}, url === "/robots.txt" ? "User-agent: *\nDisallow: /private" : (url ?? ""));
      same((await client.get(`${a.origin}/public`)).text, "/public", "as body");
      const error = await failureOf(client.get(`${a.origin}/private`), "of the disallowed request");
      const { code } = error as { readonly code?: unknown };
      same(code, "POLITELY_ROBOTS", "as code of the error");
      same(
        a.requests.map(({ url }) => url),
        ["/robots.txt", "/public"],
        "as requests",
      );
    },
  },
];

/** The same client; a request that fails after its case has failed is nobody's concern. */
function quiet({ get, post, open }: HttpClient): HttpClient {
  const hush = <T>(promise: Promise<T>): Promise<T> => {
    promise.catch(() => undefined);
    return promise;
  };
  return {
    get: (...args) => hush(get(...args)),
    post: (...args) => hush(post(...args)),
    ...(open && { open: (url) => hush(open(url)) }),
  };
}

type Grant = Extract<LimiterEvent, { type: "grant" }>;

function grantsOf(events: readonly LimiterEvent[], key: string | undefined): Grant[] {
  return events.filter((event): event is Grant => event.type === "grant" && (key === undefined || event.key === key));
}

function outcomesAt(events: readonly LimiterEvent[], key: string): string[] {
  return events.flatMap((event) => (event.type === "release" && event.key === key ? [event.outcome] : []));
}
