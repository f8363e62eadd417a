import { Agent, fetch as undiciFetch } from "undici";
import type { IncomingHttpHeaders } from "undici/types/header.js";
import type { BodyFiles } from "./bodyFiles.js";
import type { GrantTimes } from "./grants.js";
import type { Page } from "./page.js";
import { type PageAnswer, PageHandler } from "./pageHandler.js";
import type { RobotsTries } from "./robotsTries.js";

/** Under this name the init of a `fetch` carries the page that it is for. */
export const PAGE: unique symbol = Symbol("politely.get.page");

/** An init with its page. The limiter passes on what it does not know. */
export interface PageInit extends RequestInit {
  readonly [PAGE]?: Page;
}

/** What the transport tells. Times are those of `performance.now()`. */
export interface TransportListener {
  /** A request is about to be sent. Returns when it was granted. */
  sending(url: string, page: Page | undefined): GrantTimes;
  /** That request is over. */
  sent(url: string, page: Page | undefined): void;
}

/** How requests are sent. */
export interface TransportOptions {
  readonly files: BodyFiles;
  readonly listener: TransportListener;
  /** The longest silence of a site: before its headers, and between two pieces of a body. */
  readonly timeoutMs: number;
  /** The largest body that is kept. */
  readonly maxBytes: number;
  /** Whether an answer holds its host, so that it is told at its headers. */
  isHolding(url: string, status: number, headers: IncomingHttpHeaders): boolean;
  readonly robots: RobotsTries;
}

const CONNECT_MS = 15_000;

/**
 * Sends the requests of a limiter's `fetch` through undici, and gives the bodies of pages to the disk as they arrive.
 *
 * What it resolves to is a `Response` as far as the limiter looks at one: status and headers, and no body, since that has gone to disk
 * already. An answer that holds its host comes at its headers, with a body that has no bytes and ends with the real one. So the place of a
 * request is kept until its last byte, and a large body is never whole in memory.
 */
export class Transport {
  readonly #agent: Agent;

  constructor(readonly options: TransportOptions) {
    const { timeoutMs } = options;
    this.#agent = new Agent({
      connect: { timeout: Math.min(CONNECT_MS, timeoutMs) },
      headersTimeout: timeoutMs,
      bodyTimeout: timeoutMs,
    });
  }

  /** For `politely(policy, { fetch })`. */
  readonly fetch = (input: string | URL | Request, init: PageInit = {}): Promise<Response> => {
    const url = typeof input === "string" ? input : input instanceof URL ? input.href : input.url;
    const page = init[PAGE];
    return page === undefined ? this.#plain(url, init) : this.#page(url, init, page);
  };

  /** Breaks off whatever is under way. */
  destroy(): Promise<void> {
    return this.#agent.destroy();
  }

  /** For robots.txt, which the limiter reads itself. */
  async #plain(url: string, init: RequestInit): Promise<Response> {
    const { listener } = this.options;
    listener.sending(url, undefined);
    try {
      const given = { ...init, dispatcher: this.#agent } as unknown as Parameters<typeof undiciFetch>[1];
      const send = async (): Promise<Response> => (await undiciFetch(url, given)) as unknown as Response;
      return await this.options.robots.send(url, send);
    } finally {
      listener.sent(url, undefined);
    }
  }

  async #page(url: string, init: RequestInit, page: Page): Promise<Response> {
    const { listener } = this.options;
    const start = page.started(url, listener.sending(url, page));
    try {
      const answer = await this.#dispatch(url, { ...recordOf(init.headers), ...page.conditionsAt(url) }, page);
      page.answered(start, answer);
      const rest = answer.rest?.then(() => page.ended(start));
      return new Answer(answer.status, answer.headers, rest) as unknown as Response;
    } finally {
      page.ended(start);
      listener.sent(url, page);
    }
  }

  #dispatch(url: string, headers: Record<string, string>, page: Page): Promise<PageAnswer> {
    const hash = url.indexOf("#");
    const whole = hash < 0 ? url : url.slice(0, hash);
    // After the two slashes of the scheme. The limiter gives URLs in their normal form: a path is always there.
    const slash = whole.indexOf("/", whole.indexOf("//") + 2);
    const { files, maxBytes, timeoutMs } = this.options;
    const isHolding = (status: number, fields: IncomingHttpHeaders): boolean =>
      this.options.isHolding(url, status, fields);
    return new Promise((resolve, reject) => {
      this.#agent.dispatch(
        { origin: whole.slice(0, slash), path: whole.slice(slash), method: "GET", headers },
        new PageHandler(page.url, files, { resolve, reject }, { maxBytes, timeoutMs, isHolding }),
      );
    });
  }
}

function recordOf(headers: RequestInit["headers"]): Record<string, string> {
  if (headers === undefined) return {};
  if (headers instanceof Headers) return Object.fromEntries(headers);
  return headers as Record<string, string>;
}

/** What the limiter looks at in an answer. */
class Answer {
  readonly type = "default";
  readonly headers: AnswerHeaders;
  readonly #body: ReadableStream<Uint8Array> | null;

  /** `rest` resolves with the last byte, where that has not arrived. */
  constructor(
    readonly status: number,
    fields: IncomingHttpHeaders,
    rest: Promise<void> | undefined,
  ) {
    this.headers = new AnswerHeaders(fields);
    this.#body = rest === undefined ? null : emptyUntil(rest);
  }

  get body(): ReadableStream<Uint8Array> | null {
    return this.#body;
  }
}

/** A stream without bytes that ends when `over` resolves, or whoever reads it has enough. */
function emptyUntil(over: Promise<void>): ReadableStream<Uint8Array> {
  let isCancelled = false;
  return new ReadableStream({
    async start(controller) {
      await over;
      if (!isCancelled) controller.close();
    },
    cancel() {
      isCancelled = true;
    },
  });
}

/** Headers of an answer. Their names are in lower case. */
class AnswerHeaders {
  constructor(readonly fields: IncomingHttpHeaders) {}

  get(name: string): string | null {
    const value = this.fields[name.toLowerCase()];
    return value === undefined ? null : Array.isArray(value) ? value.join(", ") : value;
  }

  [Symbol.iterator](): Iterator<[string, string | string[] | undefined]> {
    return Object.entries(this.fields)[Symbol.iterator]();
  }
}
