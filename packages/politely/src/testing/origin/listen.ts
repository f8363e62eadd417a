import type { Clock } from "../../types.js";
import { isWhole, sendBody } from "./body.js";
import type { Exchange } from "./exchange.js";
import type { Incoming, Outgoing } from "./host.js";
import type { ListeningOrigin } from "./types.js";
import type { Begin } from "./virtualFetch.js";

/** The part of `node:http` that is called. */
interface HttpModule {
  createServer(listener: (request: HttpRequest, response: HttpResponse) => void): HttpServer;
}

interface HttpServer {
  listen(options: { readonly port: number; readonly host: string }): void;
  once(event: "listening" | "error", listener: (error?: unknown) => void): void;
  off(event: "error", listener: (error?: unknown) => void): void;
  address(): unknown;
  close(done: () => void): void;
  closeAllConnections(): void;
}

interface HttpRequest {
  readonly method?: string;
  readonly url?: string;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  readonly socket: { resetAndDestroy(): void };
  resume(): void;
}

interface HttpResponse {
  sendDate: boolean;
  writeHead(status: number, headers: Readonly<Record<string, string>>): void;
  flushHeaders(): void;
  write(chunk: Uint8Array): boolean;
  end(chunk?: Uint8Array | string): void;
  on(event: "drain" | "close", listener: () => void): void;
  readonly writableFinished: boolean;
}

const loopback = "127.0.0.1";

/** Serves what `begin` plays over HTTP on the loopback address. Rejects with the system's error when the port is taken. */
export async function listenOn(port: number, clock: Clock, begin: Begin): Promise<ListeningOrigin> {
  // A name that only Node knows, kept from bundlers and from type checks without Node's types.
  const moduleName: string = "node:http";
  const http = (await import(/* @vite-ignore */ moduleName)) as HttpModule;
  const server = http.createServer((request, response) => serve(request, response, clock, begin));
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.once("listening", () => {
      server.off("error", reject);
      resolve();
    });
    server.listen({ port, host: loopback });
  });

  const { port: given } = server.address() as { readonly port: number };
  let closing: Promise<void> | undefined;
  const close = (): Promise<void> => {
    closing ??= new Promise((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
    return closing;
  };
  return { url: `http://${loopback}:${given}`, port: given, close, [Symbol.asyncDispose]: close };
}

function serve(request: HttpRequest, response: HttpResponse, clock: Clock, begin: Begin): void {
  response.sendDate = false;
  request.resume();
  const incoming = incomingOf(request);
  if (incoming === undefined) {
    response.writeHead(400, {});
    response.end();
    return;
  }
  const fail = (error: unknown): void => {
    response.writeHead(500, { "content-type": "text/plain;charset=utf-8" });
    response.end(`${String(error)}\n`);
  };
  try {
    const exchange = begin(incoming, {
      answer: (outgoing) => send(response, outgoing, clock, exchange),
      break: () => request.socket.resetAndDestroy(),
      fail,
    });
    response.on("close", () => {
      // After the last byte the flight ends by its own time, as it does without a network.
      if (!response.writableFinished) exchange.end();
    });
    exchange.start();
  } catch (error) {
    fail(error);
  }
}

function send(response: HttpResponse, outgoing: Outgoing, clock: Clock, exchange: Exchange): void {
  const { status, headers, body } = outgoing;
  response.writeHead(status, headers);
  if (body === undefined) response.end();
  else if (isWhole(outgoing)) response.end(body.content as Uint8Array);
  else {
    response.flushHeaders();
    const sending = sendBody(outgoing, body, clock, () => exchange.end());
    response.on("close", () => sending.fail(new Error("The client went away.")));
    void pump(sending.stream.getReader(), response);
  }
}

/** Writes as fast as the client reads. Ends when the body does, or when the client goes away. */
async function pump(reader: ReadableStreamDefaultReader<Uint8Array>, response: HttpResponse): Promise<void> {
  let wake = (): void => undefined;
  response.on("drain", () => wake());
  response.on("close", () => wake());
  try {
    for (let chunk = await reader.read(); !chunk.done; chunk = await reader.read()) {
      if (!response.write(chunk.value)) await new Promise<void>((resolve) => (wake = resolve));
    }
    response.end();
  } catch {
    // The client went away, and there is nobody left to tell.
  }
}

function incomingOf({ method = "GET", url = "/", headers }: HttpRequest): Incoming | undefined {
  const fields = Object.entries(headers).map(([name, value]) => [
    name,
    Array.isArray(value) ? value.join(", ") : String(value),
  ]);
  try {
    const target = new URL(url, `http://${String(headers.host)}`);
    return { url: target, method, headers: Object.freeze(Object.fromEntries(fields) as Record<string, string>) };
  } catch {
    return undefined;
  }
}
