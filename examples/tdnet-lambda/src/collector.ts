import { DynamoDB } from "@aws-sdk/client-dynamodb";
import { type PolicyInput, politely } from "politely";
import { emfMetrics } from "politely/cloudwatch";
import { dynamodbStore } from "politely/dynamodb";
import { exclusive } from "politely/lease";
import { type CollectedDay, collectDay, tokyoDay } from "./collectDay.js";
import { openDays } from "./days.js";
import { metricsDimensions, metricsNamespace } from "./metricNames.js";
import type { Settings } from "./settings.js";

/** Who asks for a run, and how long it may take. */
export interface RunRequest {
  /** What others are told while this run has the lock: 1 to 200 characters. */
  readonly label: string;
  /** The run gives up after this, with time left to put things in order. */
  readonly withinMs: number;
}

/** What became of it. `held` false: somebody else is at it, and nothing was asked of the site. */
export type RunResult =
  | { readonly held: true; readonly token: number; readonly found: CollectedDay }
  | { readonly held: false; readonly heldBy: string; readonly remainingMs: number };

/** Collects one day at a time, however many functions there are. */
export interface Collector {
  /**
   * Takes the lock and collects today's list, or says who has the lock.
   *
   * Rejects with `StoreError` when the table cannot be used, before the site is asked for anything; with `LeaseLostError` when
   * the lock was lost on the way. Whatever happens, nothing is under way any more when it settles: a function may be frozen then.
   */
  run(request: RunRequest): Promise<RunResult>;
}

const lockName = "tdnet-collector";
const told: ReadonlySet<string> = new Set(["grant", "cooldown", "warn", "outage", "refuse", "expire"]);

/** Makes a collector. `write` takes its log, a line of JSON at a time: metrics (EMF), and what the limiter did. */
export function openCollector(settings: Settings, write: (line: string) => void): Collector {
  const { siteUrl, daysTable, limitsTable, lockSeconds, maxPages } = settings;
  // Region, credentials and endpoint come from the environment, as everywhere in AWS.
  const client = new DynamoDB({});
  const store = dynamodbStore(client, { table: limitsTable });
  const days = openDays(client, daysTable);
  const policy = policyOf(settings);

  return {
    async run({ label, withinMs }) {
      // "closed": without the table there is no limit that all functions share, so nothing is sent.
      const polite = politely(policy, { store, outage: "closed" });
      polite.subscribe((event) => told.has(event.type) && write(JSON.stringify(event)));
      const metrics = emfMetrics(polite, {
        namespace: metricsNamespace,
        dimensions: metricsDimensions,
        write,
        tokensOf: (host) => polite.stats(host),
      });
      try {
        const lease = await metrics.countLease(exclusive(store, lockName, { ttl: `${lockSeconds}s`, label }));
        if (!lease.held) return lease;
        const deadline = startDeadline(withinMs);
        try {
          const signal = AbortSignal.any([lease.signal, deadline.signal]);
          const day = tokyoDay(Date.now());
          await days.begin(day, lease.token);
          const fetch = (url: URL) => polite.fetch(url, { signal, politely: { timeout: "20s" } });
          const found = await collectDay({ siteUrl, day, maxPages, signal: lease.signal, fetch });
          await days.finish(found, lease.token);
          return { held: true, token: lease.token, found };
        } finally {
          deadline.clear();
          await lease.release();
        }
      } finally {
        await metrics.close();
        await polite.close();
      }
    },
  };
}

/** The limits of the site: five at once, then one each two seconds, and never two at a time, of all functions together. */
function policyOf({ siteUrl, contact, lockSeconds }: Settings): PolicyInput {
  return {
    hosts: {
      [siteUrl.hostname]: {
        rate: "0.5/s",
        burst: 5,
        concurrency: 1,
        backoff: "exponential", // 5, 10, 20, 40, 60 s after errors; a 429 says how long itself
        // The place of a run that died in the middle of a request is free again no later than its lock.
        permitTtl: `${Math.min(30, lockSeconds)}s`,
        maxWait: "2min", // a site that wants to be left alone for longer gets its wish: the run fails
      },
    },
    http: { userAgent: "tdnet-collector/1.0", contact, retry: { attempts: 4 } },
  };
}

function startDeadline(withinMs: number): { readonly signal: AbortSignal; clear(): void } {
  const controller = new AbortController();
  const stop = (): void =>
    controller.abort(
      new Error(`The run was not over after ${withinMs} ms. Lower MAX_PAGES, or give the function longer.`),
    );
  const timer = setTimeout(stop, withinMs);
  return { signal: controller.signal, clear: () => clearTimeout(timer) };
}
