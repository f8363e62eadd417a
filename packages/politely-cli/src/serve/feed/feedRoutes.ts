import type { FastifyInstance } from "fastify";
import type { PolicyInput } from "politely";
import { stoppingProblem } from "../api/asProblem.js";
import { ProblemError } from "../api/problem.js";
import type { ServiceLimiter } from "../serviceLimiter.js";
import type { TurnedAway } from "../turnedAway.js";
import { FeedReaders } from "./feedReaders.js";
import { feedSchema, hostsSchema, hostTimelineSchema, timelineSchema } from "./feedSchemas.js";
import { HostFeed, type HostFeedOptions } from "./hostFeed.js";
import type { HostRecord } from "./hostRecord.js";
import { ranking } from "./ranking.js";
import type { HostRow, HostState } from "./row.js";

/** What the feed needs to know of the service. */
export interface FeedRoutesOptions {
  readonly limiter: Pick<ServiceLimiter, "eachStats" | "explain" | "stats" | "subscribe">;
  /** The policy in force, with what was changed since the start: the same object until it is another one. */
  readonly policy: () => PolicyInput;
  /** Whether the dashboard may offer to pause hosts and to change limits. */
  readonly isWritable: boolean;
  /** The version of the program, as the dashboard shows it. Default `""`. */
  readonly version?: string;
  /** Aborted once the service stops: streams end, and no new ones begin. Default: never. */
  readonly stopping?: AbortSignal;
  /** Hears of readers for whom there was no place. Default: nobody does. */
  readonly turnedAway?: TurnedAway;
  /** For tests. Default: the machine's. */
  readonly clock?: HostFeedOptions["clock"];
  /** How many hosts are kept. Default 20,000. */
  readonly maxHosts?: number;
}

/**
 * Adds `GET /v1/hosts`, `/v1/feed`, `/v1/timeline` (all hosts) and `/v1/timeline/:domain`.
 *
 * Listens to the limiter from now on and until the app closes, which also ends every stream. Throws a `ProblemError`: 404 for a host never seen,
 * 503 when 64 read the feed already; for what is no host the limiter's `TypeError` is passed on.
 */
export function feedRoutes(app: FastifyInstance, options: FeedRoutesOptions): void {
  const { limiter, policy, isWritable, version = "", stopping, clock, maxHosts } = options;
  const feed = new HostFeed({
    limiter,
    policy,
    ...(clock === undefined ? {} : { clock }),
    ...(maxHosts === undefined ? {} : { maxHosts }),
  });
  const readers = new FeedReaders(feed, { version, isWritable, startedAt: Math.round(feed.moment().wallMs) });

  stopping?.addEventListener("abort", () => readers.close(), { once: true });
  // Streams never end by themselves, and the app would wait for them.
  app.addHook("preClose", (done) => {
    readers.close();
    feed.close();
    done();
  });

  app.get<{ Querystring: { q?: string; state?: HostState; limit: number } }>(
    "/v1/hosts",
    { schema: hostsSchema, exposeHeadRoute: true },
    async ({ query: { q = "", state, limit } }) => {
      await readers.refresh();
      const wanted = q.trim().toLowerCase();
      const fits = (row: HostRow): boolean =>
        row.domain.includes(wanted) && (state === undefined || row.state === state);
      return { hostCount: feed.hostCount, ...(await ranking(feed, { limit, fits })) };
    },
  );

  app.get("/v1/feed", { schema: feedSchema }, async (request, reply) => {
    checkRoom(readers, options);
    await readers.refresh();
    const first = await readers.first();
    // That takes a moment: the reader may have gone meanwhile, the last place too.
    checkRoom(readers, options);
    const { socket } = request.raw;
    if (socket.destroyed) return reply.hijack();
    const stream = readers.join(first);
    // Not the response: one behind another on the same connection hears nothing of its end.
    socket.once("close", () => stream.destroy());
    return reply
      .header("content-type", "text/event-stream; charset=utf-8")
      .header("cache-control", "no-store")
      .header("x-accel-buffering", "no")
      .send(stream);
  });

  app.get("/v1/timeline", { schema: timelineSchema, exposeHeadRoute: true }, async () => feed.timeline());
  app.get<{ Params: { domain: string } }>(
    "/v1/timeline/:domain",
    { schema: hostTimelineSchema, exposeHeadRoute: true },
    async ({ params: { domain } }) => feed.timeline(await found(feed, limiter, domain)),
  );
}

function checkRoom({ hasRoom }: FeedReaders, { stopping, turnedAway }: FeedRoutesOptions): void {
  if (stopping?.aborted === true) throw stoppingProblem();
  if (hasRoom) return;
  turnedAway?.count("feed");
  const detail = "64 dashboards read the feed already. Close one, or try again later.";
  throw new ProblemError(503, detail, { code: "full", retryAfterMs: 10_000 });
}

/** The record of a host or URL. What is neither makes the limiter throw a `TypeError`. */
async function found(feed: HostFeed, limiter: Pick<ServiceLimiter, "explain">, domain: string): Promise<HostRecord> {
  const record = feed.record(domain) ?? feed.record((await limiter.explain(domain)).key);
  if (record === undefined) throw new ProblemError(404, `Nothing was asked of ${JSON.stringify(domain)} yet.`);
  return record;
}
