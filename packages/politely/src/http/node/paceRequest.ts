import type { FetchOptions } from "../../types.js";
import type { Exchange } from "../exchange.js";
import type { Flight } from "../flight.js";
import { before, follow, type SentRequest } from "./follow.js";

/** The part of Node's `ClientRequest` that is called here. */
export interface NodeRequest extends SentRequest {
  readonly method?: string;
  readonly protocol?: string;
  readonly path: string;
  readonly headersSent: boolean;
  readonly destroyed: boolean;
  getHeader(name: string): unknown;
  setHeader(name: string, value: string): unknown;
  /** Gives it its connection, or the error with which there is none. */
  onSocket(socket: null, error?: unknown): void;
  /** The request of `follow-redirects` that this one is a hop of. */
  readonly _redirectable?: Redirectable;
}

/** What a request asks its agent for. */
export interface ConnectionOptions {
  readonly host?: string;
  readonly port?: string | number | null;
  readonly socketPath?: string | null;
  /** Some adapter of Politely has paced it already. */
  [PACED]?: boolean;
}

interface Redirectable {
  _timeout?: unknown;
}

/** Under this name the options of a request say that it is paced: also to another copy of this module, hence the registry. */
export const PACED: unique symbol = Symbol.for("politely.paced");

/** How HTTP clients call themselves where their user says nothing. */
const CLIENTS = /^(?:axios\/|node-fetch|node-superagent\/|Needle\/|got \(https:)/;

/**
 * Holds a request that asks its agent for a connection until the limiter admits it, then lets the agent have it (`proceed`).
 *
 * A `ClientRequest` works without a connection: what is written is kept, and its timeouts begin with the connection. One that
 * is given up while it waits leaves the queue at once, takes nothing, and ends as one does in the queue of its agent. What the
 * limiter refuses is the `error` of the request. A CONNECT goes on at once: it is a step on the way of another request.
 */
export function paceRequest(
  exchange: Exchange,
  request: NodeRequest,
  connection: ConnectionOptions,
  proceed: (flight?: Flight) => void,
  options?: FetchOptions,
): void {
  connection[PACED] = true;
  const url = request.method === "CONNECT" ? undefined : urlOf(request, connection);
  if (url === undefined) {
    proceed();
    return;
  }
  const start = (flight: Flight): void => {
    startRequest(exchange, request, flight, () => proceed(flight));
  };
  const wait = new AbortController();
  let entered: Flight | Promise<Flight>;
  try {
    if (request.destroyed) wait.abort();
    const ownAgent = introduce(exchange, request);
    // The limiter's own fetch, its questions for robots.txt and the tasks of its `run` may come this way.
    const own = exchange.relay?.take(url);
    const errand = { url, signal: wait.signal, ownAgent, options, turn: own?.flight };
    entered = own?.isAsked === true ? own.flight : exchange.enter(errand);
  } catch (error) {
    request.destroy(error);
    request.onSocket(null);
    return;
  }
  if (entered instanceof Promise) startLater(request, wait, entered, start);
  else start(entered);
}

/** Lets the agent have a request that is admitted, and ends `flight` with it. */
export function startRequest(exchange: Exchange, request: NodeRequest, flight: Flight, proceed: () => void): void {
  follow(request, flight, exchange.pacer.clock);
  try {
    proceed();
  } catch (error) {
    flight.failed(error);
    throw error;
  }
}

/** Starts a request once it is admitted. Its listeners run in the caller's async context, since `then` is called there. */
function startLater(
  request: NodeRequest,
  wait: AbortController,
  entered: Promise<Flight>,
  start: (flight: Flight) => void,
): void {
  let isWaiting = true;
  before(request, "destroy", (error) => {
    if (!isWaiting) return;
    isWaiting = false;
    wait.abort(error);
    // Node tells of an end only where there is a connection, or none to be had.
    request.onSocket(null);
  });
  let resume: (() => void) | undefined;
  // The hop does not know yet what it is a hop of.
  queueMicrotask(() => {
    if (isWaiting) resume = stopTimer(request._redirectable);
  });
  const admitted = (flight: Flight): void => {
    if (!isWaiting) {
      flight.unused();
      return;
    }
    isWaiting = false;
    resume?.();
    try {
      start(flight);
    } catch (error) {
      request.onSocket(null, error);
    }
  };
  entered.then(admitted, (error: unknown) => {
    if (isWaiting) request.destroy(error);
  });
}

/** `follow-redirects` has one timer for all hops. It stands still while a hop waits, and begins again with what is returned. */
function stopTimer(redirectable: Redirectable | undefined): (() => void) | undefined {
  const timer = redirectable?._timeout as { _idleTimeout: number; _onTimeout: () => void } | null | undefined;
  if (redirectable === undefined || timer === undefined || timer === null) return undefined;
  const { _idleTimeout: ms, _onTimeout: act } = timer;
  clearTimeout(timer as unknown as number);
  return () => {
    redirectable._timeout = setTimeout(act, ms);
  };
}

/** Sets the policy's User-Agent unless the program has one of its own, which is returned when it is asked for. */
function introduce({ identity }: Exchange, request: NodeRequest): () => string | undefined {
  const given = request.getHeader("user-agent");
  const own = typeof given === "string" && !CLIENTS.test(given) ? given : undefined;
  const { userAgent } = identity;
  if (own === undefined && userAgent !== undefined && !request.headersSent) request.setHeader("User-Agent", userAgent);
  return () => own;
}

/**
 * Where a request goes; undefined when that is no URL. Through a proxy its path is the URL.
 *
 * Otherwise the name that it connects to counts, and not its `Host` header, which a gateway may have passed on from its own caller.
 */
export function urlOf(
  request: Pick<NodeRequest, "protocol" | "path">,
  { host = "localhost", port, socketPath }: ConnectionOptions,
): string | undefined {
  const { protocol = "http:", path } = request;
  if (/^https?:\/\//i.test(path)) return URL.canParse(path) ? path : undefined;
  const name = host.includes(":") && !host.startsWith("[") ? `[${host}]` : host;
  // Behind a socket of the file system is this machine.
  const origin = socketPath ? "http://localhost" : `${protocol}//${name}${port ? `:${port}` : ""}`;
  const url = `${origin}${path.startsWith("/") ? path : "/"}`;
  return URL.canParse(url) ? url : undefined;
}
