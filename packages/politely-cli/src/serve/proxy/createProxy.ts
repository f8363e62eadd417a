import { randomBytes } from "node:crypto";
import { setMaxListeners } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { asProblem } from "../api/asProblem.js";
import { ProblemError } from "../api/problem.js";
import { PROBE_AFTER_MS } from "../httpServer.js";
import { closeServer } from "../listening.js";
import type { TurnedAway } from "../turnedAway.js";
import { ClientGuard } from "./clientGuard.js";
import { ClientGone } from "./failures.js";
import { answerProblem, ProxyProblem, rawProblem } from "./proxyProblem.js";
import { type RelayContext, relay } from "./relay.js";
import { requestHead } from "./requestHead.js";
import { Sender } from "./sender.js";
import { readAuthority, readTarget, siteOf, socketHost } from "./target.js";
import { TargetGuard } from "./targetGuard.js";
import { refuseTunnel, type TunnelContext, tunnel } from "./tunnel.js";
import { type TurnLimiter, Turns } from "./turns.js";

/** How the pacing proxy works. */
export interface ProxyOptions {
  readonly limiter: TurnLimiter;
  /** Whether private, loopback and link-local targets may be reached. */
  readonly allowPrivate: boolean;
  /** Given: every client has to send it. Default: none, and only clients of this machine are served. */
  readonly token?: string | undefined;
  /** Names under which the gateway may be called, beside its address and localhost. Default none. */
  readonly allowedHosts?: readonly string[] | undefined;
  /** Ports that CONNECT may open. Default 443. */
  readonly connectPorts?: readonly number[] | undefined;
  /** Further ports of this service, which are never targets on this machine; the proxy's own is always one. Asked at each connection. */
  readonly ownPorts?: (() => readonly number[]) | undefined;
  /** The longest body of a request. Default 100 MiB. */
  readonly maxBodyBytes?: number | undefined;
  /** Clients connected at once, tunnels included. Default 1,000 more than may wait, so that these get a 503; more are closed at once. */
  readonly maxConnections?: number | undefined;
  /** Requests that wait for their turn at once. Default 20,000; more get a 503. */
  readonly maxWaiting?: number | undefined;
  /** The longest silence of a site or a client in the middle of a request. Default 60 s. */
  readonly timeoutMs?: number | undefined;
  /** The longest time to connect. Default 15 s. */
  readonly connectTimeoutMs?: number | undefined;
  /** The longest silence in a tunnel. Default 5 min. */
  readonly tunnelIdleMs?: number | undefined;
  /** The longest time a client may take for its headers. Default 15 s. */
  readonly headersTimeoutMs?: number | undefined;
  /** Certificates to trust for https instead of Node's own, PEM. Default: Node's own. */
  readonly ca?: readonly string[] | undefined;
  /** Counts those for whom there was no place. Default: nobody does. */
  readonly turnedAway?: TurnedAway | undefined;
  /** Hears of mistakes of the proxy itself; never of what clients ask for. */
  log(line: string): void;
  /** Hears of each request when its answer is over, of a tunnel when it is open: method, origin, status; 499 when its client went before. Never a path or a header. Default: nobody. */
  readonly logRequest?: ((line: string) => void) | undefined;
}

/** A pacing proxy. The caller listens with `server`. */
export interface PacingProxy {
  readonly server: Server;
  /** Requests that wait for their turn. */
  readonly waitingCount: number;
  /** Refuses new work, gives those who wait a 503, lets what is under way end for `graceMs` (default 0) and breaks off the rest. */
  close(options?: { readonly graceMs?: number }): Promise<void>;
}

const MAX_HEADER_BYTES = 32 * 1024;
/** Requests on one connection whose answers are not there yet; browsers and curl have one. */
const MAX_PIPELINED = 16;
const MAX_WAITING = 20_000;
const SPARE_CONNECTIONS = 1_000;
const CHECK_MS = 1_000;
const KEEP_ALIVE_MS = 5_000;
/** What the log says of a client that went before its answer began. */
const GONE_STATUS = 499;

/** Makes the proxy that paces plain HTTP and tunnels by host, and the gateway that paces HTTPS by request. */
export function createProxy(options: ProxyOptions): PacingProxy {
  const server = createServer({
    maxHeaderSize: MAX_HEADER_BYTES,
    headersTimeout: options.headersTimeoutMs ?? 15_000,
    // A request may wait for its turn for hours, its body unread; what stalls on the way is noticed there.
    requestTimeout: 0,
    keepAliveTimeout: KEEP_ALIVE_MS,
    connectionsCheckingInterval: CHECK_MS,
    // Not left to the flags of the process: what frames a body must not be read in two ways.
    insecureHTTPParser: false,
    // What lacks one gets an answer with a body, as all others do.
    requireHostHeader: false,
    keepAlive: true,
    keepAliveInitialDelay: PROBE_AFTER_MS,
  });
  server.maxConnections = options.maxConnections ?? (options.maxWaiting ?? MAX_WAITING) + SPARE_CONNECTIONS;
  // Node would drop the headers beyond, silently. Their size is bounded.
  server.maxHeadersCount = 0;
  return new HttpProxy(server, options);
}

class HttpProxy implements PacingProxy {
  readonly #clients: ClientGuard;
  readonly #turns: Turns;
  readonly #sender: Sender;
  readonly #relay: RelayContext;
  readonly #tunnel: TunnelContext;
  /** Those that wait or are open; one whose client has gone may still owe its site the end of an upload. */
  readonly #tunnels = new Set<Promise<void>>();
  readonly #broken = new AbortController();
  /** Every connection, with the answers that it is still owed. */
  readonly #sockets = new Map<Duplex, Set<ServerResponse>>();

  constructor(
    readonly server: Server,
    readonly options: ProxyOptions,
  ) {
    const { limiter, allowPrivate, maxWaiting = MAX_WAITING, connectTimeoutMs = 15_000 } = options;
    const guard = new TargetGuard({ allowPrivate, ownPorts: () => this.#ownPorts() });
    // Every open tunnel listens.
    setMaxListeners(0, this.#broken.signal);
    this.#clients = new ClientGuard(options);
    const onFull = (): void => options.turnedAway?.count("proxy");
    this.#turns = new Turns({ limiter, maxWaiting, onFull, log: (line) => options.log(line) });
    this.#sender = new Sender({ guard, connectTimeoutMs, maxHeaderBytes: MAX_HEADER_BYTES, ca: options.ca });
    this.#relay = {
      turns: this.#turns,
      sender: this.#sender,
      timeoutMs: options.timeoutMs ?? 60_000,
      maxBodyBytes: options.maxBodyBytes ?? 100 * 1024 * 1024,
      // Random, so that two proxies in a row do not take each other for a loop.
      pseudonym: `politely-${randomBytes(6).toString("hex")}`,
    };
    this.#tunnel = {
      turns: this.#turns,
      guard,
      connectTimeoutMs,
      tunnelIdleMs: options.tunnelIdleMs ?? 300_000,
      broken: this.#broken.signal,
    };
    server.on("connection", (socket) => this.#keep(socket));
    server.on("request", (request, response) => this.#serve(request, response, false));
    server.on("checkContinue", (request: IncomingMessage, response: ServerResponse) =>
      this.#serve(request, response, true),
    );
    server.on("checkExpectation", (request, response) => this.#serve(request, response, false));
    server.on("drop", () => options.turnedAway?.count("connections"));
    server.on("connect", (request, client, early) => this.#connect(request, client, early));
    server.on("clientError", (error, socket) => this.#refuseUnread(error, socket));
  }

  get waitingCount(): number {
    return this.#turns.waitingCount;
  }

  async close({ graceMs = 0 }: { readonly graceMs?: number } = {}): Promise<void> {
    this.#turns.stop();
    const timer = setTimeout(() => {
      for (const socket of this.#sockets.keys()) socket.destroy();
      this.#broken.abort();
    }, graceMs);
    await closeServer(this.server, graceMs);
    await Promise.all(this.#tunnels);
    clearTimeout(timer);
    this.#sender.destroy();
  }

  #keep(socket: Socket): void {
    const owed = new Set<ServerResponse>();
    this.#sockets.set(socket, owed);
    socket.once("close", () => {
      this.#sockets.delete(socket);
      // Node tells only the first in line that its connection is gone.
      for (const response of owed) if (response.socket === null) response.emit("close");
    });
  }

  #serve(request: IncomingMessage, response: ServerResponse, isContinueWanted: boolean): void {
    const { socket } = request;
    const owed = this.#sockets.get(socket);
    const [front] = owed ?? [];
    // Behind one that waits, with many answers in between, Node reads no further: nobody would notice when the client goes.
    const isDeaf = front?.headersSent === false && socket.isPaused();
    if (owed === undefined || owed.size >= MAX_PIPELINED || isDeaf) {
      socket.destroy();
      return;
    }
    owed.add(response);
    response.once("close", () => {
      owed.delete(response);
      this.#tell(request, response.headersSent ? response.statusCode : GONE_STATUS);
    });
    this.#pass(request, response, isContinueWanted).catch((error: unknown) => {
      if (!(error instanceof ClientGone)) answerProblem(response, this.#problemOf(error));
    });
  }

  async #pass(request: IncomingMessage, response: ServerResponse, isContinueWanted: boolean): Promise<void> {
    const { url = "" } = request;
    this.#clients.checkClient(request, url.startsWith("/") ? "gateway" : "proxy");
    const target = readTarget(url);
    if (target.form === "gateway") this.#clients.checkGateway(request, target);
    const { maxBodyBytes, pseudonym } = this.#relay;
    const isOurs = (authorization: string): boolean => this.#clients.isOurs(authorization);
    const head = requestHead(request, target, { maxBodyBytes, pseudonym, isOurs });
    // Known without asking anybody: no turn is waited for.
    this.#tunnel.guard.checkLiteral(socketHost(target.hostname), target.port);
    await relay(this.#relay, { request, response, target, head, isContinueWanted });
  }

  #connect(request: IncomingMessage, client: Duplex, early: Buffer): void {
    client.on("error", () => undefined);
    const tunnelled = this.#open(request, client, early)
      .catch((error: unknown) => {
        const problem = error instanceof ClientGone ? undefined : this.#problemOf(error);
        this.#tell(request, problem?.status ?? GONE_STATUS);
        if (problem === undefined) client.destroy();
        else refuseTunnel(client, problem);
      })
      .finally(() => this.#tunnels.delete(tunnelled));
    this.#tunnels.add(tunnelled);
  }

  async #open(request: IncomingMessage, client: Duplex, early: Buffer): Promise<void> {
    this.#clients.checkClient(request, "proxy");
    const { hostname, port } = readAuthority(request.url ?? "");
    const { connectPorts = [443] } = this.options;
    if (!connectPorts.includes(port)) {
      const detail = `CONNECT opens port ${connectPorts.join(", ")} only; got ${port}. Allow more with --connect-ports.`;
      throw new ProxyProblem(403, detail, { proxyError: "http_request_denied" });
    }
    const { "content-length": length, "transfer-encoding": encoding } = request.headers;
    if (length !== undefined || encoding !== undefined) throw new ProxyProblem(400, "A CONNECT has no body.");
    const onOpen = (): void => this.#tell(request, 200);
    await tunnel(this.#tunnel, { client, early, hostname, port, onOpen });
  }

  #tell(request: IncomingMessage, status: number): void {
    const { logRequest } = this.options;
    logRequest?.(`${request.method ?? "GET"} ${siteOf(request) ?? "?"} ${status}`);
  }

  /** What could not be read as a request, or not in time. */
  #refuseUnread(error: NodeJS.ErrnoException, socket: Duplex): void {
    // While an answer is owed, a client would take this one for it.
    if (!socket.writable || (this.#sockets.get(socket)?.size ?? 0) > 0 || error.code === "ECONNRESET") {
      socket.destroy();
      return;
    }
    socket.end(rawProblem(unreadProblem(error)), () => socket.destroy());
  }

  #problemOf(error: unknown): ProblemError {
    if (error instanceof ProblemError) return error;
    this.options.log(`proxy: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`);
    return asProblem(undefined);
  }

  #ownPorts(): readonly number[] {
    const address = this.server.address();
    const own = typeof address === "object" && address !== null ? [address.port] : [];
    return [...own, ...(this.options.ownPorts?.() ?? [])];
  }
}

function unreadProblem({ code, message }: NodeJS.ErrnoException): ProxyProblem {
  const more = { proxyError: "http_request_error" };
  if (code === "HPE_HEADER_OVERFLOW") {
    return new ProxyProblem(431, `The headers have more than ${MAX_HEADER_BYTES} bytes. Send less.`, more);
  }
  if (code === "ERR_HTTP_REQUEST_TIMEOUT") return new ProxyProblem(408, "The headers did not arrive in time.", more);
  return new ProxyProblem(400, `The request is not HTTP as it should be: ${message}.`, more);
}
