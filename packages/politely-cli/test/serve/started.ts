import { once } from "node:events";
import type { Server } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { type Limiter, type PolicyInput, politely } from "politely";
import { createService, type Service, type ServiceOptions } from "../../src/serve/createService.js";
import { type HttpServerOptions, httpServer } from "../../src/serve/httpServer.js";
import { closeServer } from "../../src/serve/listening.js";
import type { ServiceLimiter } from "../../src/serve/serviceLimiter.js";
import type { TurnedAway } from "../../src/serve/turnedAway.js";
import { Contract } from "./contract.js";

/** How a service of a test differs from the usual one. */
export interface StartOptions extends Partial<Omit<ServiceOptions, "policy" | "state">> {
  readonly policy?: PolicyInput;
  readonly limiter?: Limiter;
  /** What the service calls in place of the limiter itself. Default: the limiter. */
  readonly wrap?: (limiter: Limiter) => ServiceLimiter;
  /** Where its state is. Default `"memory"`. */
  readonly store?: ServiceOptions["state"]["store"];
  readonly server?: Partial<HttpServerOptions>;
  /** Whether the store answers. Default: it does. */
  readonly isThere?: () => Promise<boolean>;
}

/** What a service answered. Everything it says fits its own document. */
export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Record<string, unknown>;
  readonly text: string;
}

/** What is sent beside the body. */
export interface CallInit {
  readonly headers?: Readonly<Record<string, string>>;
}

/** A service that listens on a free port. */
export class Started implements AsyncDisposable {
  /** The service's ends of all connections so far. */
  readonly accepted: Socket[] = [];

  private constructor(
    readonly service: Service,
    readonly limiter: Limiter,
    readonly server: Server,
    /** What it wrote to its log. */
    readonly lines: readonly string[],
    readonly contract: Contract,
  ) {
    server.on("connection", (socket) => this.accepted.push(socket));
  }

  static async with(options: StartOptions = {}): Promise<Started> {
    const {
      policy = { default: { rate: "1000/s", burst: 1000 } },
      server: bounds,
      limiter: given,
      wrap,
      store = "memory",
      isThere = async () => true,
      ...rest
    } = options;
    const limiter = given ?? politely(policy);
    const lines: string[] = [];
    const state = { limiter: wrap?.(limiter) ?? limiter, store, isThere };
    const service = await createService({ log: (line) => lines.push(line), ...rest, state, policy });
    const server = httpServer((request, response) => service.handle(request, response), {
      maxConnections: 1_000,
      onDrop: () => service.turnedAway.count("connections"),
      ...bounds,
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const contract = new Contract();
    const started = new Started(service, limiter, server, lines, contract);
    const { token } = options;
    const document = await fetch(
      `${started.url}/v1/openapi.json`,
      token === undefined ? {} : { headers: bearer(token) },
    );
    contract.read(await document.json());
    return started;
  }

  get turnedAway(): TurnedAway {
    return this.service.turnedAway;
  }

  get port(): number {
    return (this.server.address() as AddressInfo).port;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /** Sends JSON, or a text as it is. Throws when the answer does not fit the document. */
  async call(method: string, path: string, body?: unknown, init: CallInit = {}): Promise<Answer> {
    const isText = typeof body === "string";
    const response = await fetch(this.url + path, {
      method,
      ...(body === undefined ? {} : { body: isText ? body : JSON.stringify(body) }),
      headers: { ...(body === undefined ? {} : { "content-type": "application/json" }), ...init.headers },
    });
    const text = await response.text();
    this.contract.check({ method, path, status: response.status, type: response.headers.get("content-type"), text });
    const isJson = response.headers.get("content-type")?.includes("json") === true && text !== "";
    const parsed: unknown = isJson ? JSON.parse(text) : {};
    return { status: response.status, headers: response.headers, body: parsed as Record<string, unknown>, text };
  }

  post(path: string, body?: unknown, init?: CallInit): Promise<Answer> {
    return this.call("POST", path, body, init);
  }

  get(path: string, init?: CallInit): Promise<Answer> {
    return this.call("GET", path, undefined, init);
  }

  /** A connection that nothing is known about. */
  async connect(): Promise<Socket> {
    const socket = connect({ port: this.port, host: "127.0.0.1", allowHalfOpen: true });
    socket.on("error", () => undefined);
    await once(socket, "connect");
    return socket;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.service.dismiss();
    await closeServer(this.server, 0);
    await this.service.close();
    await this.limiter.close();
  }
}

/** The text of a request, as it goes over the wire. */
export function requestText(path: string, body: unknown, more = ""): string {
  const text = JSON.stringify(body);
  return `POST ${path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(text)}\r\n${more}\r\n${text}`;
}

/** What comes from a connection until it ends. */
export async function readAll(socket: Socket): Promise<string> {
  let text = "";
  socket.on("data", (chunk: Buffer) => {
    text += chunk.toString("latin1");
  });
  if (!socket.closed) {
    await new Promise<void>((resolve) => {
      socket.once("end", resolve);
      socket.once("close", () => resolve());
    });
  }
  socket.destroy();
  return text;
}

/** Waits until `isSo`, at most 10 s unless told otherwise. */
export async function until(isSo: () => boolean, what: string, withinMs = 10_000): Promise<void> {
  const giveUpMs = performance.now() + withinMs;
  while (!isSo()) {
    if (performance.now() > giveUpMs) throw new Error(`Not within ${withinMs} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}

export function bearer(token: string): Record<string, string> {
  return { authorization: `Bearer ${token}` };
}
