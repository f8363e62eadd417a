import { type Limiter, type PolicyInput, politely } from "politely";
import type { HostWait } from "../get/observer.js";
import { nextStartMs } from "../view/nextStart.js";
import type { DemoSite } from "./sites.js";
import type { Tally } from "./tally.js";

/** Somebody who wants every page of every site. */
export interface Caller {
  readonly name: "naive" | "polite";
  /** What it calls itself, and what sites know it by. */
  readonly userAgent: string;
  /** What it does, in a sentence. */
  readonly says: string;
  /** Asks for every page once. Resolves when all are answered; rejects with the signal's reason when it is aborted. */
  call(sites: readonly DemoSite[], tally: Tally, signal: AbortSignal): Promise<void>;
}

/** How many requests the naive loop has in flight. */
const NAIVE_AT_ONCE = 10;

const naiveAgent = "naive-loop/1.0";
const politeAgent = "politely-demo/1.0";

/** A loop over `fetch`, as one writes it in a hurry: ten at a time, as fast as they come back. */
export const naiveCaller: Caller = {
  name: "naive",
  userAgent: naiveAgent,
  says: `a loop over fetch, ${NAIVE_AT_ONCE} at a time`,
  async call(sites, tally, signal) {
    const jobs = sites.flatMap((site) => site.urls.map((url) => ({ site, url }))).values();
    const work = async (): Promise<void> => {
      for (const { site, url } of jobs) {
        tally.started(site.host);
        const response = await fetch(url, { headers: { "user-agent": naiveAgent }, signal });
        const { byteLength } = await response.arrayBuffer();
        tally.ended(site.host);
        tally.finished(site.host, response.ok, byteLength);
      }
    };
    await Promise.all(Array.from({ length: NAIVE_AT_ONCE }, work));
  },
};

/** The same pages through Politely, all asked for at once: it says when each may start. */
export const politeCaller: Caller = {
  name: "polite",
  userAgent: politeAgent,
  says: "polite.fetch, with a policy and robots.txt",
  async call(sites, tally, signal) {
    const limiter = politely(politePolicy(sites));
    limiter.subscribe((event) => {
      if (event.type === "grant") tally.started(event.key);
      if (event.type === "release") tally.ended(event.key);
    });
    tally.explainWith((host) => waitOf(limiter, host));
    try {
      const ask = async (host: string, url: string): Promise<void> => {
        const response = await limiter.fetch(url, { signal });
        tally.finished(host, response.ok, (await response.arrayBuffer()).byteLength);
      };
      await Promise.all(sites.flatMap(({ host, urls }) => urls.map((url) => ask(host, url))));
    } finally {
      tally.explainWith(undefined);
      await limiter.close();
    }
  },
};

/** The policy of the polite caller. */
export function politePolicy(sites: readonly DemoSite[]): PolicyInput {
  return {
    hosts: Object.fromEntries(sites.map(({ host, policy }) => [host, policy])),
    http: { userAgent: politeAgent, robots: true },
  };
}

/** What the next start at a host waits for. */
function waitOf(limiter: Limiter, host: string): HostWait {
  const target = `http://${host}/`;
  const explanation = limiter.explain(target);
  const causes = explanation.causes.filter(({ limit }) => limit !== "queue");
  const cooldown = causes.find(({ limit }) => limit === "cooldown");
  const because = causes[0]?.because;
  return {
    nextStartMs: nextStartMs(explanation, limiter.stats(target)?.window?.nextFreeMs ?? 0),
    cooldownMs: cooldown?.waitMs ?? 0,
    ...(because === undefined ? {} : { because, reason: because }),
  };
}
