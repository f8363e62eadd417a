import type { Limiter } from "../../types.js";
import type { DispatchOptions } from "../undici/dispatchTypes.js";

/** How many origins are remembered with their answer; then all are forgotten. */
const MAX_ORIGINS = 1_024;

/** What undici and node:http say of a request on their diagnostics channels. */
interface Message {
  readonly request?: {
    readonly origin?: string | URL;
    readonly method?: string;
    readonly protocol?: string;
    readonly host?: string;
  };
}

/** Counts the requests that nobody paced: those that undici and node:http made, without those that went through the limiter. */
export class Uncovered {
  /** Requests through node:http and node:https. */
  nodeHttp = 0;
  #created = 0;
  #sent = 0;
  readonly #isExempt = new Map<string, boolean>();

  constructor(readonly limiter: Limiter) {}

  /** Requests through dispatchers of undici that were never global. */
  get ownDispatcher(): number {
    return Math.max(0, this.#created - this.#sent);
  }

  /** Hands a paced request to its dispatcher by `dispatch`. If that is paced once more, only the inner one counts. */
  send<T>({ origin, method }: DispatchOptions, dispatch: () => T): T {
    const before = this.#sent;
    const result = dispatch();
    if (this.#sent === before && this.#counts(String(origin), method)) this.#sent += 1;
    return result;
  }

  /** undici has made a request. */
  undiciCreated(message: unknown): void {
    const { request } = message as Message;
    if (this.#counts(String(request?.origin), request?.method)) this.#created += 1;
  }

  /** node:http has started a request. */
  nodeHttpStarted(message: unknown): void {
    const { protocol = "http:", host = "", method } = (message as Message).request ?? {};
    const name = host.includes(":") && !host.startsWith("[") ? `[${host}]` : host;
    if (this.#counts(`${protocol}//${name}`, method)) this.nodeHttp += 1;
  }

  /** Whether requests to an origin or host are left alone, as those to this machine are by default. */
  isExempt(origin: string): boolean {
    let known = this.#isExempt.get(origin);
    if (known === undefined) {
      known = isLeftAlone(this.limiter, origin);
      if (this.#isExempt.size >= MAX_ORIGINS) this.#isExempt.clear();
      this.#isExempt.set(origin, known);
    }
    return known;
  }

  /** A CONNECT is a step of a proxy on the way to a request, which is counted by itself. */
  #counts(origin: string, method: unknown): boolean {
    return method !== "CONNECT" && !this.isExempt(origin);
  }
}

function isLeftAlone(limiter: Limiter, origin: string): boolean {
  try {
    return limiter.explain(origin).origin === "localhost";
  } catch {
    // No host that the limiter understands, so it is not this machine either.
    return false;
  }
}
