import type { IncomingMessage, ServerResponse } from "node:http";
import { type FastifyInstance, type FastifyRequest, fastify } from "fastify";
import type { PolicyInput } from "politely";
import { machineTicker, type Ticker } from "../view/ticker.js";
import { isDeaf } from "./api/acquiring.js";
import type { ApiParts } from "./api/apiParts.js";
import { asProblem } from "./api/asProblem.js";
import { decisionRoutes } from "./api/decisionRoutes.js";
import { EventReaders } from "./api/eventReaders.js";
import { eventRoutes } from "./api/eventRoutes.js";
import { hostGuard, tokenGuard } from "./api/guard.js";
import { healthRoutes } from "./api/healthRoutes.js";
import { notFound } from "./api/notFound.js";
import { numbersInQuery } from "./api/numbersInQuery.js";
import { type KnownRoute, knownRoutes, openapiDocument } from "./api/openapi.js";
import { permitRoutes } from "./api/permitRoutes.js";
import { sendProblem } from "./api/problem.js";
import { writeRoutes } from "./api/writeRoutes.js";
import { Callers } from "./callers.js";
import { HeardCooldowns } from "./heardCooldowns.js";
import { LapsedStarts } from "./lapsedStarts.js";
import { Permits } from "./permits.js";
import { PolicyBook } from "./policyBook.js";
import { seldom } from "./seldom.js";
import type { ServiceState } from "./state.js";
import { TurnedAway } from "./turnedAway.js";

/** How a service is made. */
export interface ServiceOptions {
  readonly state: Omit<ServiceState, "close">;
  readonly policy: PolicyInput;
  /** What callers must send for all but the page and the health. Default: nothing. */
  readonly token?: string | undefined;
  /** Further names under which it may be called. Default none. */
  readonly allowedHosts?: readonly string[] | undefined;
  /** Whether pauses and limits may be changed; with a token they always may. Default false. */
  readonly isWritable?: boolean | undefined;
  /** How many callers may wait. Default 20,000. */
  readonly maxWaiting?: number | undefined;
  /** How many permits may be held or waited for. Default 100,000. */
  readonly maxPermits?: number | undefined;
  /** How many may read events at once. Default 100. */
  readonly maxReaders?: number | undefined;
  /** Default the machine's time. */
  readonly ticker?: Ticker | undefined;
  /** The version that the document names. Default `"0"`. */
  readonly version?: string | undefined;
  /** Hears what went wrong inside, a line at a time. */
  readonly log: (line: string) => void;
  /** Hears each request once it is answered, or once its caller has gone: with status 499 where no answer had begun. Default: nobody does. */
  readonly onAnswered?: ((method: string, path: string, status: number, tookMs: number) => void) | undefined;
  /** Adds routes that need the token: the feed, the metrics. */
  readonly addData?: ((app: FastifyInstance, parts: ApiParts) => void) | undefined;
  /** Adds routes that need none: the page. */
  readonly addPage?: ((app: FastifyInstance) => void) | undefined;
}

/** A service without its sockets. */
export interface Service {
  readonly permits: Permits;
  readonly callers: Callers;
  readonly turnedAway: TurnedAway;
  /** Answers one request. */
  handle(request: IncomingMessage, response: ServerResponse): void;
  /** Lets nobody in any more: those who wait are told so, streams end. Permits may still be renewed and released. */
  dismiss(): void;
  /** Frees the permits that are left, and ends. The limiter is the caller's to close. */
  close(): Promise<void>;
}

const BODY_BYTES = 65_536;
const PART_MOST = 4_096;
/** How long an answer of the store counts for those who ask about the health. */
const HEALTH_MS = 1_000;
/** What the log says of a caller that went before its answer began. */
const GONE_STATUS = 499;

/** Makes the service: its routes over a limiter, ready to answer. */
export async function createService(options: ServiceOptions): Promise<Service> {
  const { token, allowedHosts = [], addData, addPage, log, ticker = machineTicker } = options;
  const { limiter, store } = options.state;
  // Each knows what the other kind of limiter says itself.
  const lapses = store === "memory" ? new LapsedStarts(limiter, ticker) : undefined;
  const cooldowns = store === "memory" ? undefined : new HeardCooldowns(limiter, ticker);
  const parts = partsOf(options, { ticker, lapses, cooldowns });
  const readers = new EventReaders(limiter, ticker, options.maxReaders ?? 100);
  const app = bareApp(log);
  const routes = knownRoutes(app);
  numbersInQuery(app);
  app.addHook("onRequest", hostGuard({ allowedHosts }));
  if (options.onAnswered !== undefined) tellAnswers(app, options.onAnswered);
  app.setNotFoundHandler(notFound(routes));
  healthRoutes(app, parts);
  await app.register(async (data) => {
    if (token !== undefined) data.addHook("onRequest", tokenGuard(token));
    decisionRoutes(data, parts);
    permitRoutes(data, parts);
    eventRoutes(data, parts, readers);
    writeRoutes(data, parts);
    addData?.(data, parts);
    addDocument(data, routes, options.version ?? "0");
  });
  await app.register(async (page) => addPage?.(page));
  await app.ready();
  const { permits, callers, turnedAway } = parts;
  return {
    permits,
    callers,
    turnedAway,
    handle(request, response) {
      if (isDeaf(request.socket)) request.socket.destroy();
      else app.routing(request, response);
    },
    dismiss() {
      callers.stop();
      readers.close();
    },
    async close() {
      permits.lapseAll();
      lapses?.close();
      cooldowns?.close();
      await app.close();
    },
  };
}

interface Heard {
  readonly ticker: Ticker;
  readonly lapses: LapsedStarts | undefined;
  readonly cooldowns: HeardCooldowns | undefined;
}

function partsOf(options: ServiceOptions, { ticker, lapses, cooldowns }: Heard): ApiParts {
  const { state, policy, token, isWritable = false, maxWaiting = 20_000, maxPermits = 100_000, log } = options;
  const { limiter, store } = state;
  const onFailure = (error: unknown): void => log(`a permit could not be given back: ${String(error)}`);
  return {
    limiter,
    store,
    cooldowns,
    isStoreThere: seldom(
      () => state.isThere(),
      HEALTH_MS,
      () => ticker.nowMs(),
    ),
    permits: new Permits({
      ticker,
      onFailure,
      lapsedAtMs: (permit) => permit.lapsedAtMs ?? lapses?.lapsedAtMs(permit),
    }),
    callers: new Callers(maxWaiting),
    turnedAway: new TurnedAway(),
    book: new PolicyBook(limiter, policy),
    isWritable: isWritable || token !== undefined,
    maxPermits,
    ticker,
  };
}

function bareApp(log: (line: string) => void): FastifyInstance {
  const app = fastify({
    bodyLimit: BODY_BYTES,
    exposeHeadRoutes: false,
    requestIdHeader: false,
    return503OnClosing: false,
    // A site's header may have any name. Bodies are read and never merged into anything, and their fields are checked by name.
    onProtoPoisoning: "ignore",
    onConstructorPoisoning: "ignore",
    routerOptions: { maxParamLength: PART_MOST },
    ajv: { customOptions: { coerceTypes: false, removeAdditional: false, allErrors: true } },
    frameworkErrors: (error, _request, reply) => void sendProblem(reply, asProblem(error)),
  });
  // Only JSON: a page of another site cannot send it without asking first.
  app.removeContentTypeParser("text/plain");
  app.setErrorHandler((error, _request, reply) => {
    const problem = asProblem(error);
    if (problem.status === 500) log(error instanceof Error ? (error.stack ?? error.message) : String(error));
    return sendProblem(reply, problem);
  });
  return app;
}

function tellAnswers(app: FastifyInstance, tell: NonNullable<ServiceOptions["onAnswered"]>): void {
  const goneOf = new WeakMap<FastifyRequest, () => void>();
  app.addHook("onRequest", (request, reply, done) => {
    const onGone = (): void => {
      tell(request.method, request.url, reply.raw.headersSent ? reply.statusCode : GONE_STATUS, reply.elapsedTime);
    };
    goneOf.set(request, onGone);
    // Not the response: those behind another one on the same connection hear nothing of its end.
    request.raw.socket.once("close", onGone);
    done();
  });
  app.addHook("onResponse", (request, reply, done) => {
    const onGone = goneOf.get(request);
    if (onGone !== undefined) request.raw.socket.off("close", onGone);
    tell(request.method, request.url, reply.statusCode, reply.elapsedTime);
    done();
  });
}

function addDocument(app: FastifyInstance, routes: readonly KnownRoute[], version: string): void {
  let text: string | undefined;
  const schema = {
    summary: "This document",
    response: { 200: { type: "object", additionalProperties: true, description: "OpenAPI 3.1." } },
  };
  app.get("/v1/openapi.json", { schema, exposeHeadRoute: true }, (_request, reply) => {
    // Made with the first question: by then all routes are there.
    text ??= JSON.stringify(openapiDocument(routes, version));
    return reply.type("application/json; charset=utf-8").send(text);
  });
}
