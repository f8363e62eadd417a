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

/** Sees the requests of the program, those too that nobody paces, and says at the end how many there were. */
export class Sightings {
  #nodeHttp = 0;
  #created = 0;
  #sent = 0;
  /** Requests of node:http that are paced, by whomever. */
  readonly paced = new WeakSet<object>();
  readonly #exempt = new Map<string, boolean>();

  constructor(readonly limiter: Limiter) {}

  /** Hands a paced request to its dispatcher by `dispatch`. If that is paced once more, only the inner one counts. */
  send<T>({ origin, method }: DispatchOptions, dispatch: () => T): T {
    const before = this.#sent;
    const result = dispatch();
    if (this.#sent === before && this.#counts(String(origin), method)) this.#sent += 1;
    return result;
  }

  /** undici has made a request, whoever sends it. */
  undiciCreated = (message: unknown): void => {
    const { request } = message as Message;
    if (this.#counts(String(request?.origin), request?.method)) this.#created += 1;
  };

  /** node:http has all that a request is to send. */
  nodeHttpStarted = (message: unknown): void => {
    const { request = {} } = message as Message;
    const { protocol = "http:", host = "", method } = request;
    const name = host.includes(":") && !host.startsWith("[") ? `[${host}]` : host;
    if (!this.paced.has(request) && this.#counts(`${protocol}//${name}`, method)) this.#nodeHttp += 1;
  };

  /** What was paced, and what was not, in one line. `isReplaced`: something took the place of the paced global dispatcher. */
  line(origin: string, isReplaced: boolean): { readonly isEmpty: boolean; readonly text: string } {
    const stats = this.limiter.stats();
    const sum = (count: (row: (typeof stats)[number]) => number, isExempt = false): number =>
      stats.reduce((total, row) => total + (this.#isExempt(row.host) === isExempt ? count(row) : 0), 0);
    const requests = sum(({ totalRequests }) => totalRequests);
    const throttled = sum(({ throttledRequests }) => throttledRequests);
    const failed = sum(({ refused, expired }) => refused + expired);
    const waiting = sum((row) => row.waiting);
    const hosts = sum(({ foldedHosts = 1 }) => foldedHosts);
    const waitedSec = (sum(({ totalWaitMs }) => totalWaitMs) / 1_000).toFixed(1);
    const isNone = requests + failed + waiting === 0;
    const paced = isNone
      ? `no requests paced (${origin})`
      : listed([
          `${counted(requests, "request")} to ${counted(hosts, "host")} paced (${origin}), waited ${waitedSec} s in all`,
          throttled > 0 && `${counted(throttled, "answer")} said "too many requests"`,
          failed > 0 && `${failed} refused by the policy`,
          waiting > 0 && `${waiting} still waiting at the end`,
        ]);
    const local = sum(({ totalRequests }) => totalRequests, true);
    const own = Math.max(0, this.#created - this.#sent);
    const missed = listed([
      this.#nodeHttp > 0 && `${counted(this.#nodeHttp, "request")} through node:http without an agent`,
      own > 0 && `${counted(own, "request")} through undici dispatchers of the program's own`,
      local > 0 && `${counted(local, "request")} to this machine (localhost is exempt)`,
      isReplaced && "what went through another global dispatcher that the program has set",
    ]);
    return { isEmpty: isNone && missed === "", text: missed === "" ? paced : `${paced}; not covered: ${missed}` };
  }

  /** A CONNECT is a step of a proxy on the way to a request, which is counted by itself. */
  #counts(origin: string, method: unknown): boolean {
    return method !== "CONNECT" && !this.#isExempt(origin);
  }

  /** Whether requests to an origin or host are left alone, as those to this machine are by default. */
  #isExempt(origin: string): boolean {
    const known = this.#exempt.get(origin);
    if (known !== undefined) return known;
    let isExempt = false;
    try {
      isExempt = this.limiter.explain(origin).origin === "localhost";
    } catch {
      // No host that the limiter understands, so it is not this machine either.
    }
    if (this.#exempt.size >= MAX_ORIGINS) this.#exempt.clear();
    this.#exempt.set(origin, isExempt);
    return isExempt;
  }
}

function listed(parts: readonly (string | false)[]): string {
  return parts.filter((part) => part !== false).join(", ");
}

function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}
