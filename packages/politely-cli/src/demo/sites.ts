import type { Limits } from "politely";
import { type OriginBehaviour, type OriginRequest, VirtualOrigin } from "politely/testing";

/** A site of the demonstration, and what it wants of those who call it. */
export interface DemoSite {
  readonly name: string;
  /** Its manners in a few words. */
  readonly manners: string;
  /** With the port. */
  readonly host: string;
  readonly urls: readonly string[];
  /** What a policy says about it. */
  readonly policy: Limits;
  /** What its own log is held against. */
  readonly rules: Limits;
  /** All that came so far from this caller, oldest first, as the site noted it. */
  requestsFrom(userAgent: string): readonly OriginRequest[];
  /** Frees the port. What it noted stays. */
  close(): Promise<void>;
}

interface Plan {
  readonly name: string;
  readonly manners: string;
  readonly behaviour: OriginBehaviour;
  readonly policy: Limits;
  readonly rules: Limits;
}

/** The longest that an answer of these sites takes. */
export const ANSWER_WITHIN_MS = 80;

/** Each caller is counted by its name, so that the second one does not pay for the first. */
const countBy = { header: "user-agent" } as const;
const latency = { kind: "uniform", minMs: 20, maxMs: ANSWER_WITHIN_MS } as const;
const refusal = { latency: 10 };

const plans: readonly Plan[] = [
  {
    name: "strict",
    manners: "10 requests in any second, 429 to the rest",
    behaviour: { limits: [{ kind: "sliding-window", rate: "10/s", countBy }], latency, refusal },
    // Counted from the answer the site, too, never sees more, however long a request is on its way.
    policy: { window: "10/s", countFrom: "answer" },
    rules: { window: "10/s" },
  },
  {
    name: "penalty",
    manners: "the 6th in a second is banned for 2 s; each knock meanwhile adds 2 s",
    behaviour: {
      limits: [{ kind: "penalty-box", rate: "5/s", banMs: 2_000, lengthenMs: 2_000, countBy }],
      latency,
      refusal,
    },
    policy: { window: "5/s", countFrom: "answer" },
    rules: { window: "5/s" },
  },
  {
    name: "slow",
    manners: 'refuses nobody; its robots.txt asks for "Crawl-delay: 0.5"',
    behaviour: { robots: "User-agent: *\nCrawl-delay: 0.5\n", latency, refusal },
    // By robots.txt alone the gap is kept between starts, and on their way two of them may come closer.
    policy: { minDelay: "0.5s", countFrom: "answer" },
    rules: { minDelay: "0.5s" },
  },
];

/** Opens the three sites on free ports of the loopback address, each with `pages` pages to ask for. Close them all. */
export async function openSites(pages: number): Promise<readonly DemoSite[]> {
  const opened: DemoSite[] = [];
  try {
    for (const plan of plans) opened.push(await openSite(plan, pages));
    return opened;
  } catch (error) {
    await Promise.all(opened.map((site) => site.close()));
    throw error;
  }
}

async function openSite({ behaviour, ...plan }: Plan, pages: number): Promise<DemoSite> {
  const origin = new VirtualOrigin(behaviour);
  const listening = await origin.listen();
  return {
    ...plan,
    host: `127.0.0.1:${listening.port}`,
    urls: Array.from({ length: pages }, (_, index) => `${listening.url}/page/${index + 1}`),
    requestsFrom: (userAgent) => origin.requests.filter(({ headers }) => headers["user-agent"] === userAgent),
    close: () => listening.close(),
  };
}
