import type { Limits } from "../../../src/index.js";
import { startHaproxy } from "../haproxy.js";
import { startNginx } from "../nginx.js";
import type { LogRecord, Server, ServerHost } from "../server.js";

const perSecond = 20;
const burst = 9;
const connections = 4;
const answerMs = 200;

/** One kind of limit, and what it means for a policy. */
export interface SiteKind {
  readonly name: string;
  /** The policy that keeps exactly to it, however the network jitters. */
  readonly fromAnswer: Limits;
  /** The policy that would keep to it if every request took equally long to arrive. */
  readonly fromStart: Limits;
  /** The most requests it allows between two arrivals that lie this far apart, both included. */
  readonly allowed: (spanMs: number) => number;
}

/** Several hosts that have the same limit. */
export interface Site {
  readonly kind: SiteKind;
  readonly hosts: readonly ServerHost[];
  /** What arrived at these hosts, by arrival. */
  log(): Promise<LogRecord[]>;
}

/** All kinds of limits, each on hosts of its own. */
export interface Sites extends AsyncDisposable {
  readonly all: readonly Site[];
}

/** nginx forgets a request after 50 ms; one that comes earlier is refused. */
const strict: SiteKind = {
  name: "nginx, 20 r/s",
  fromAnswer: { minDelay: 50, countFrom: "answer" },
  fromStart: { minDelay: 50 },
  allowed: (spanMs) => 1 + (spanMs * perSecond) / 1_000,
};

/**
 * Ten at once, and one more for each 50 ms. A bucket counts from the start whatever `countFrom` says, so the policy is the
 * window that fits under this line: in k windows of 500 ms it starts at most 10k, and nginx allows 10 + 10(k - 1).
 */
const bursting: SiteKind = {
  name: "nginx, 20 r/s, burst 9",
  fromAnswer: { window: "10/500ms", countFrom: "answer" },
  fromStart: { rate: "20/s", burst: 10 },
  allowed: (spanMs) => 1 + burst + (spanMs * perSecond) / 1_000,
};

/** A place is free with the last byte, for the client a moment later than for nginx: what counts from where changes nothing. */
const connected: SiteKind = {
  name: "nginx, 4 connections",
  fromAnswer: { concurrency: connections, countFrom: "answer" },
  fromStart: { concurrency: connections },
  allowed: (spanMs) => connections * (1 + spanMs / answerMs),
};

/**
 * The estimate is this second's requests and a share of the last second's. With a gap of 1/19 s a second holds at most 19,
 * and 1 + 19x in this one with 19(1 - x) of the last make 20; with a gap of 1/20 s it can be 21.
 */
const estimated: SiteKind = {
  name: "haproxy, 20 in 1 s",
  fromAnswer: { minDelay: 52.632, countFrom: "answer" },
  fromStart: { minDelay: 50 },
  allowed: (spanMs) => 1 + (spanMs * perSecond) / 1_000,
};

/** All of them, in the order of `Sites`. */
export const kinds: readonly SiteKind[] = [strict, bursting, connected, estimated];

/** Starts nginx and haproxy with `hostsEach` hosts for each kind of limit. A `retryAfterSec` of 0 says nothing to a client. */
export async function startSites(options: { hostsEach: number; retryAfterSec: number }): Promise<Sites> {
  const { hostsEach, retryAfterSec } = options;
  const each = <T>(limits: T): T[] => Array.from({ length: hostsEach }, () => limits);
  const nginx = await startNginx({
    limits: [...each({ perSecond }), ...each({ perSecond, burst }), ...each({ connections, answerMs })],
    retryAfterSec,
  });
  let haproxy: Server;
  try {
    haproxy = await startHaproxy({ limits: each({ count: perSecond }), retryAfterSec });
  } catch (error) {
    await nginx.stop();
    throw error;
  }
  const kinds = [strict, bursting, connected].map((kind, index) =>
    siteOf(kind, nginx, nginx.hosts.slice(index * hostsEach, (index + 1) * hostsEach)),
  );
  return {
    all: [...kinds, siteOf(estimated, haproxy, haproxy.hosts)],
    async [Symbol.asyncDispose]() {
      await Promise.all([nginx.stop(), haproxy.stop()]);
    },
  };
}

/** A rule for each host, by address and port: both servers have the same addresses. */
export function rulesFor(sites: readonly Site[], choose: (kind: SiteKind) => Limits): Record<string, Limits> {
  return Object.fromEntries(
    sites.flatMap(({ kind, hosts }) => hosts.map(({ origin }) => [new URL(origin).host, choose(kind)])),
  );
}

/** Where all requests go. */
export function originsOf(sites: readonly Site[]): string[] {
  return sites.flatMap(({ hosts }) => hosts.map(({ origin }) => origin));
}

function siteOf(kind: SiteKind, server: Server, hosts: readonly ServerHost[]): Site {
  const addresses = new Set(hosts.map(({ address }) => address));
  return { kind, hosts, log: async () => (await server.log()).filter(({ host }) => addresses.has(host)) };
}
