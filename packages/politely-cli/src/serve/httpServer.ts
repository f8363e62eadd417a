import { createServer, type RequestListener, type Server, STATUS_CODES } from "node:http";
import type { Socket } from "node:net";
import { PROBLEM_TYPE, ProblemError, problemText } from "./api/problem.js";

/** What bounds the connections of the service. All times in milliseconds. */
export interface HttpServerOptions {
  /** Connections at once; more are closed as they come. */
  readonly maxConnections: number;
  /** Hears of each connection that was closed as it came. Default: nobody does. */
  readonly onDrop?: (() => void) | undefined;
  /** How long a caller may take for its headers. Default 10 s. */
  readonly headersMs?: number | undefined;
  /** How long a caller may take for the whole request. Default 30 s. How long it waits for the answer is not bounded. */
  readonly requestMs?: number | undefined;
  /** How long a connection may stay open without a request. Default 72 s. */
  readonly idleMs?: number | undefined;
  /** How long an answer may stay without a byte of it being taken. Default 60 s. */
  readonly unreadMs?: number | undefined;
}

const HEADER_BYTES = 16_384;
/** Requests on one connection whose answers are not out yet. Who reads before asking again has one. */
const PIPELINED_MOST = 100;
/** Peers that vanished without a word are noticed some minutes after this much silence. */
export const PROBE_AFTER_MS = 30_000;

/**
 * Makes a server for `handle`, with every wait of it bounded but the one for a turn. What is no HTTP is answered with problem details, and its
 * connection closed; so is one that asks for more and more without reading.
 */
export function httpServer(handle: RequestListener, options: HttpServerOptions): Server {
  const { maxConnections, headersMs = 10_000, requestMs = 30_000, idleMs = 72_000, unreadMs = 60_000 } = options;
  const server = createServer(
    {
      headersTimeout: Math.min(headersMs, requestMs),
      requestTimeout: requestMs,
      keepAliveTimeout: idleMs,
      connectionsCheckingInterval: Math.max(50, Math.min(headersMs, requestMs, 5_000) / 2),
      maxHeaderSize: HEADER_BYTES,
      // A request without Host gets an answer with a body, as all others do.
      requireHostHeader: false,
      keepAlive: true,
      keepAliveInitialDelay: PROBE_AFTER_MS,
    },
    inLine(handle),
  );
  server.timeout = unreadMs;
  server.maxConnections = maxConnections;
  if (options.onDrop !== undefined) server.on("drop", options.onDrop);
  // Requests that stand in line on one connection each listen for its end.
  server.on("connection", (socket) => socket.setMaxListeners(0));
  server.on("clientError", refuse);
  server.on("checkExpectation", (_request, response) => {
    const problem = new ProblemError(417, "The only expectation that is met is 100-continue.");
    response.writeHead(417, { "content-type": PROBLEM_TYPE, connection: "close" }).end(problemText(problem));
  });
  return server;
}

/** Hands requests on, unless too many of their connection have no answer yet. */
function inLine(handle: RequestListener): RequestListener {
  const owed = new WeakMap<Socket, number>();
  return (request, response) => {
    const { socket } = request;
    const before = owed.get(socket) ?? 0;
    if (before >= PIPELINED_MOST) {
      socket.destroy();
      return;
    }
    owed.set(socket, before + 1);
    response.once("close", () => owed.set(socket, (owed.get(socket) ?? 1) - 1));
    response.on("timeout", dropUnread);
    handle(request, response);
  };
}

/** Nothing has moved on a connection for a while. Who waits for a turn may: only what nobody takes is given up. */
function dropUnread(socket: Socket): void {
  if (socket.writableLength > 0) socket.destroy();
}

/** Answers what the parser did not understand, if nothing was said on this connection yet, and closes it. */
function refuse(error: NodeJS.ErrnoException, socket: Socket): void {
  if (error.code === "ECONNRESET" || !socket.writable || socket.bytesWritten > 0) {
    socket.destroy();
    return;
  }
  const { status, detail } = clientProblem(error.code);
  const body = problemText(new ProblemError(status, detail));
  socket.write(
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\ncontent-type: ${PROBLEM_TYPE}\r\ncontent-length: ${Buffer.byteLength(body)}\r\nconnection: close\r\n\r\n${body}`,
  );
  socket.destroySoon();
}

function clientProblem(code: string | undefined): { readonly status: number; readonly detail: string } {
  switch (code ?? "") {
    case "ERR_HTTP_REQUEST_TIMEOUT":
      return { status: 408, detail: "The request took too long to arrive." };
    case "HPE_HEADER_OVERFLOW":
      return { status: 431, detail: `The headers have more than ${HEADER_BYTES} bytes.` };
    default:
      return { status: 400, detail: "This is no HTTP request." };
  }
}
