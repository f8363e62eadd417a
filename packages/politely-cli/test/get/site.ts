import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** One request as the site saw it. */
export interface Seen {
  readonly path: string;
  /** On `performance.now()` of this process. */
  readonly atMs: number;
  readonly headers: IncomingMessage["headers"];
}

/** A site on this machine. */
export interface Site extends AsyncDisposable {
  /** `http://127.0.0.1:PORT`. */
  readonly origin: string;
  /** Everything that was asked for, robots.txt left out. */
  readonly seen: readonly Seen[];
  /** How often each path was asked for. */
  counts(): Map<string, number>;
  /** Resolves once it has seen so many requests. */
  until(count: number): Promise<void>;
}

/** Answers a request. True when it did; else the site answers with a short page. */
export type Answer = (request: IncomingMessage, response: ServerResponse) => boolean | undefined;

/** Answers each request after some time, and counts how many were open at once. */
export class Crowd {
  most = 0;
  #open = 0;

  constructor(readonly delayMs: number) {}

  readonly answer: Answer = (_, response) => {
    this.#open += 1;
    this.most = Math.max(this.most, this.#open);
    setTimeout(() => {
      this.#open -= 1;
      response.end("x");
    }, this.delayMs);
    return true;
  };
}

/** Starts a site that answers every path with its name, after `delayMs`. */
export async function startSite(options: { readonly delayMs?: number; readonly answer?: Answer } = {}): Promise<Site> {
  const seen: Seen[] = [];
  let wake: () => void = () => undefined;
  const server = createServer((request, response) => {
    const path = request.url ?? "";
    if (path === "/robots.txt" && options.answer?.(request, response) !== true) {
      response.writeHead(404).end();
      return;
    }
    if (path === "/robots.txt") return;
    seen.push({ path, atMs: performance.now(), headers: request.headers });
    wake();
    setTimeout(() => {
      if (options.answer?.(request, response) !== true) {
        response.writeHead(200, { "content-type": "text/plain" }).end(`page ${path}`);
      }
    }, options.delayMs ?? 0);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    seen,
    counts() {
      const counts = new Map<string, number>();
      for (const { path } of seen) counts.set(path, (counts.get(path) ?? 0) + 1);
      return counts;
    },
    async until(count) {
      while (seen.length < count) {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

/** `count` URLs of a site. */
export function pages(site: Site, count: number): string[] {
  return Array.from({ length: count }, (_, index) => `${site.origin}/p/${index}.html`);
}
