import type { LimiterEvent } from "../observe/types.js";
import type { PolicyInput } from "../policy/types.js";
import type { Limiter } from "../types.js";
import { type ServedAnswer, type ServedRequest, serveHttp } from "./nodeServer.js";

/** A site on this machine, with everything it was asked. */
export interface Site {
  readonly origin: string;
  /** How the policy names it. */
  readonly key: string;
  readonly requests: ServedRequest[];
  /** Answers every request. At first with 200 and the path. */
  answer: (request: ServedRequest, answer: ServedAnswer) => void;
  /** Stops at once; whoever asks afterwards is refused. */
  close(): Promise<void>;
}

/** Two sites, a limiter and a client that is paced by it. */
export interface HttpWorld<Client> {
  readonly a: Site;
  readonly b: Site;
  readonly limiter: Limiter;
  readonly client: Client;
  readonly events: readonly LimiterEvent[];
}

/** What a world is made of. */
export interface HttpWorldParts<Client> {
  readonly makeLimiter: (policy: PolicyInput) => Limiter;
  readonly makeClient: (limiter: Limiter) => Client;
  /** The policy, given how it names the two sites. */
  readonly policy: (a: string, b: string) => PolicyInput;
}

/** How long a condition may take to come true. */
const PATIENCE_MS = 2_000;

/** Makes a world, lets `play` run in it, checks that the books balance and nothing is left in flight, and takes all of it down. */
export async function inHttpWorld<Client>(
  parts: HttpWorldParts<Client>,
  play: (world: HttpWorld<Client>) => Promise<void>,
): Promise<void> {
  const a = await startSite("127.0.0.2");
  const b = await startSite("127.0.0.3");
  const limiter = parts.makeLimiter(parts.policy(a.key, b.key));
  try {
    const events: LimiterEvent[] = [];
    limiter.subscribe((event) => events.push(event));
    await play({ a, b, limiter, client: parts.makeClient(limiter), events });
    await until("nothing is in flight", () =>
      limiter.stats().every(({ inFlight, waiting }) => inFlight + waiting === 0),
    );
    for (const row of limiter.stats()) {
      const { host, asked, granted, refused, cancelled, expired, released, lapsed } = row;
      same(asked, granted + refused + cancelled + expired, `of the requests asked for at ${host}`);
      same(granted, released, `of the requests granted at ${host}, with ${lapsed} lapsed`);
    }
  } finally {
    await limiter.close();
    await Promise.all([a.close(), b.close()]);
  }
}

/** Resolves once a condition holds; fails after 2 s. */
export async function until(what: string, condition: () => boolean): Promise<void> {
  const deadlineMs = performance.now() + PATIENCE_MS;
  while (!condition()) {
    if (performance.now() > deadlineMs) throw new Error(`After ${PATIENCE_MS} ms it is still not so that ${what}.`);
    await pause(2);
  }
}

/** Waits in real time. */
export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => void setTimeout(resolve, ms));
}

/** Fails unless two values are the same, as JSON has them. */
export function same(actual: unknown, expected: unknown, what: string): void {
  const [got, wanted] = [actual, expected].map((value) => JSON.stringify(value));
  if (got !== wanted) throw new Error(`Expected ${wanted} ${what}; got ${got}.`);
}

/** The error a promise ends with; fails when there is none. */
export async function failureOf(promise: Promise<unknown>, what: string): Promise<unknown> {
  const value = await promise.then(
    () => undefined,
    (error: unknown) => ({ error }),
  );
  if (value === undefined) throw new Error(`Expected a failure ${what}; there was none.`);
  return value.error;
}

/** Lets a site answer with headers and keep the body open; without a status, with nothing at all. Gives the answer last begun. */
export function openBody(site: Site, status: number | undefined, headers = {}): () => ServedAnswer {
  let begun: ServedAnswer | undefined;
  site.answer = (_request, answer) => {
    begun = answer;
    if (status !== undefined) answer.writeHead(status, headers).flushHeaders();
  };
  return () => {
    if (begun === undefined) throw new Error(`Nobody has asked ${site.origin} yet.`);
    return begun;
  };
}

/** Answers at once. */
export function reply(answer: ServedAnswer, status: number, headers = {}, text = ""): void {
  answer.writeHead(status, headers);
  answer.end(text);
}

/** Starts a site at an address of this machine. Where there is no such address, a port of 127.0.0.1 stands for it. */
async function startSite(address: string): Promise<Site> {
  const requests: ServedRequest[] = [];
  const serve = (request: ServedRequest, answer: ServedAnswer): void => {
    requests.push(request);
    site.answer(request, answer);
  };
  const server = await serveHttp({ host: address, port: 0 }, serve).catch(() =>
    serveHttp({ host: "127.0.0.1", port: 0 }, serve),
  );
  const host = `${server.address}:${server.port}`;
  const site: Site = {
    origin: `http://${host}`,
    key: server.address === address ? address : host,
    requests,
    answer: ({ url = "" }, answer) => reply(answer, 200, {}, url),
    close: server.close,
  };
  return site;
}
