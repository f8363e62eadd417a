import type { LimiterEvent } from "../observe/types.js";
import type { Limits, PolicyInput } from "../policy/types.js";
import type { Limiter } from "../types.js";
import { failureOf, type HttpWorld, inHttpWorld, openBody, pause, reply, type Site, same, until } from "./httpWorld.js";

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

/** What a case needs: the limits of both sites, what it plays, and what its client has to be able to do. */
type Case = readonly [
  policy: Limits & Pick<PolicyInput, "http">,
  play: (world: HttpWorld<HttpClient>) => Promise<void>,
  needs?: HttpFeature,
];

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
  const cases = Object.entries(CASES).filter(([, [, , needs]]) => needs === undefined || !lacks.includes(needs));
  return cases.map(([title, [{ http, ...limits }, play]]) => {
    const policy = (a: string, b: string): PolicyInput => ({
      hosts: { [a]: limits, [b]: limits },
      ...(http && { http }),
    });
    const parts = { makeLimiter, makeClient: (limiter: Limiter) => quiet(makeClient(limiter)), policy };
    return { title: `${name} ${title}`, run: () => inHttpWorld(parts, play) };
  });
}

const one: Limits = { concurrency: 1 };
const two: Limits = { concurrency: 2 };
const unforgiving: Limits = { concurrency: 1, backoff: "none" };
const userAgent = "Suite/1.0";

const CASES: Readonly<Record<string, Case>> = {
  "spaces the starts at one host and leaves another alone": [
    { minDelay: 30 },
    async ({ a, b, client, events }) => {
      const urls = [...["/1", "/2", "/3"].map((path) => a.origin + path), b.origin];
      const answers = await Promise.all(urls.map((url) => client.get(url)));
      const statuses = answers.map(({ status }) => status);
      same(statuses, [200, 200, 200, 200], "as statuses");
      same(answers[0].text, "/1", "as body");
      const starts = grantsOf(events, a.key).map(({ atMs }) => atMs);
      const gaps = starts.slice(1).map((atMs, index) => atMs - starts[index]);
      const isSpaced = gaps.map((gap) => gap > 29.999);
      same(isSpaced, [true, true], `as "30 ms or more" for gaps of ${gaps.join(" and ")} ms`);
      const waits = grantsOf(events, b.key).map(({ waitedMs }) => waitedMs);
      same(waits, [0], "as waits at the other host");
    },
  ],
  "holds the host as soon as the headers of a 429 are there": [
    two,
    async ({ a, client, limiter }) => {
      const body = openBody(a, 429, { "retry-after": "7" });
      const answer = client.get(a.origin);
      await until("the host cools down", () => (limiter.stats(a.key)?.cooldownMs ?? 0) > 6_000);
      same(limiter.stats(a.key)?.inFlight, 1, "in flight while the body is open");
      body().end("slow down");
      same(await answer, { status: 429, text: "slow down" }, "as answer");
      same(limiter.stats(a.key)?.throttledRequests, 1, "as throttled requests");
    },
    "early headers",
  ],
  "hears what an answer says, and counts it once": [
    two,
    async ({ a, client, limiter }) => {
      same((await client.get(a.origin)).status, 200, "as first status");
      a.answer = (_request, answer) => reply(answer, 429, { "retry-after": "7" });
      same((await client.get(a.origin)).status, 429, "as second status");
      const { totalRequests, throttledRequests, cooldownMs = 0 } = limiter.stats(a.key) ?? {};
      same([totalRequests, throttledRequests], [2, 1], "as requests and throttled ones");
      same(cooldownMs > 6_000, true, `as "more than 6 s" for a cooldown of ${cooldownMs} ms`);
    },
  ],
  "keeps its place until the body has ended": [
    one,
    async ({ a, client, limiter }) => {
      const { first, body } = await inBody(a, client);
      const second = client.get(a.origin);
      await until("the second waits", () => limiter.stats(a.key)?.waiting === 1);
      await pause(10);
      same(a.requests.length, 1, "asked while the first body is open");
      a.answer = (_request, answer) => reply(answer, 200, {}, "second");
      body().end("first");
      same([(await first).text, (await second).text], ["first", "second"], "as bodies");
    },
  ],
  "leaves the queue when it is aborted, and takes nothing": [
    one,
    async ({ a, client, limiter }) => {
      const { first, body } = await inBody(a, client);
      const controller = new AbortController();
      const second = failureOf(client.get(a.origin, { signal: controller.signal }), "of the aborted request");
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
  ],
  "frees its place when it is aborted before the answer or in its body, and holds nothing against the site": [
    one,
    async ({ a, client, limiter }) => {
      for (const status of [undefined, 200]) {
        openBody(a, status);
        const seen = a.requests.length;
        const controller = new AbortController();
        const failure = failureOf(client.get(a.origin, { signal: controller.signal }), "of the aborted request");
        await until("the site was asked", () => a.requests.length === seen + 1);
        await pause(10);
        controller.abort();
        await failure;
        a.answer = (_request, answer) => reply(answer, 200);
        same((await client.get(a.origin)).status, 200, "as status of the next request");
        same(limiter.stats(a.key)?.cooldownMs, 0, "ms of cooldown");
      }
    },
  ],
  "takes a connection that is refused or reset for trouble of the site": [
    unforgiving,
    async ({ a, b, client, events }) => {
      await b.close();
      await failureOf(client.get(b.origin), "of the refused connection");
      same(outcomesAt(events, b.key), ["server_error"], "as outcomes of the refused connection");
      a.answer = ({ socket }) => void socket.resetAndDestroy();
      await failureOf(client.get(a.origin), "of the reset connection");
      same(outcomesAt(events, a.key), ["server_error"], "as outcomes of the reset connection");
    },
  ],
  "judges an answer whose body is torn off by its status": [
    one,
    async ({ a, client, limiter, events }) => {
      a.answer = ({ socket }, answer) => {
        answer.writeHead(200, { "content-length": "1000" }).flushHeaders();
        answer.write("half");
        setTimeout(() => void socket.destroy(), 10);
      };
      await failureOf(client.get(a.origin), "of the torn body");
      same(outcomesAt(events, a.key), ["neutral"], "as outcomes of the torn body");
      same(limiter.stats(a.key)?.cooldownMs, 0, "ms of cooldown");
    },
    "early headers",
  ],
  "paces each redirect under its own host, and keeps credentials to their origin": [
    { minDelay: 5 },
    async ({ a, b, client, events }) => {
      a.answer = ({ url }, answer) =>
        url === "/first"
          ? reply(answer, 302, { location: "/second" })
          : reply(answer, 307, { location: `${b.origin}/third` });
      const headers = { authorization: "Bearer secret", cookie: "id=1", "x-own": "kept" };
      same(await client.get(`${a.origin}/first`, { headers }), { status: 200, text: "/third" }, "as answer");
      const hosts = grantsOf(events, undefined).map(({ key }) => key);
      same(hosts, [a.key, a.key, b.key], "as hosts in turn");
      const secrets = a.requests.map((request) => request.headers.authorization);
      same(secrets, ["Bearer secret", "Bearer secret"], "at home");
      const { authorization, cookie, "x-own": own } = b.requests[0].headers;
      same([authorization ?? null, cookie ?? null, own], [null, null, "kept"], "as headers at the other origin");
    },
  ],
  "makes a GET of a POST that is answered with 303, and sends a POST again after 307": [
    one,
    async ({ a, client }) => {
      a.answer = ({ url }, answer) =>
        url === "/end" ? reply(answer, 200) : reply(answer, url === "/303" ? 303 : 307, { location: "/end" });
      await client.post(`${a.origin}/303`, "body");
      await client.post(`${a.origin}/307`, "body");
      const seen = a.requests.map(({ method, url, headers: { "content-length": bytes = "none" } }) =>
        [method, url, bytes].join(" "),
      );
      same(seen, ["POST /303 4", "GET /end none", "POST /307 4", "POST /end 4"], "as requests");
    },
  ],
  "sends the policy's User-Agent unless the caller has one": [
    { minDelay: 1, http: { userAgent, contact: "https://suite.example" } },
    async ({ a, client }) => {
      await client.get(a.origin);
      await client.get(a.origin, { headers: { "user-agent": "Own/2.0" } });
      const agents = a.requests.map(({ headers }) => headers["user-agent"]);
      same(agents, ["Suite/1.0 (+https://suite.example)", "Own/2.0"], "as User-Agents");
    },
  ],
  "does not count time in the queue towards the client's timeout, also behind a redirect": [
    { minDelay: 250 },
    async ({ a, b, client, limiter }) => {
      a.answer = (_request, answer) => reply(answer, 302, { location: `${b.origin}/end` });
      const urls = [a.origin, a.origin, `${b.origin}/direct`];
      const answers = await Promise.all(urls.map((url) => client.get(url, { timeoutMs: 240 })));
      const statuses = answers.map(({ status }) => status);
      same(statuses, [200, 200, 200], "as statuses");
      same(limiter.stats(b.key)?.totalRequests, 3, "requests at the second host");
    },
  ],
  "takes an answer that does not come in time for a timeout, and frees its place": [
    unforgiving,
    async ({ a, client, events }) => {
      openBody(a, undefined);
      await failureOf(client.get(a.origin, { timeoutMs: 40 }), "of the request without an answer");
      same(outcomesAt(events, a.key), ["timeout"], "as outcomes");
    },
  ],
  "does not keep its place for a small body that nobody reads": [
    one,
    async ({ a, client }) => {
      if (client.open === undefined) throw new Error('The client has no open(); say that it lacks "unread bodies".');
      const kept = await client.open(a.origin);
      same((await client.get(`${a.origin}/next`)).text, "/next", "as body of the next request");
      same(kept === undefined, false, "as absence of the first answer");
    },
    "unread bodies",
  ],
  "does not ask for what robots.txt disallows": [
    { minDelay: 1, http: { userAgent, robots: true } },
    async ({ a, client }) => {
      a.answer = ({ url = "" }, answer) =>
        reply(answer, 200, {}, url === "/robots.txt" ? "User-agent: *\nDisallow: /private" : url);
      same((await client.get(`${a.origin}/public`)).text, "/public", "as body");
      const error = await failureOf(client.get(`${a.origin}/private`), "of the disallowed request");
      same((error as { readonly code?: unknown }).code, "POLITELY_ROBOTS", "as code of the error");
      const urls = a.requests.map(({ url }) => url);
      same(urls, ["/robots.txt", "/public"], "as requests");
    },
    "robots",
  ],
};

/** A request whose answer has begun, and whose body is open. */
async function inBody(site: Site, client: HttpClient) {
  const body = openBody(site, 200);
  const first = client.get(site.origin);
  await until("the site was asked", () => site.requests.length === 1);
  return { first, body };
}

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
