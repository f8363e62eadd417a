import { toUs } from "../../engine/systemClock.js";
import { parseRetryAfter } from "../../http/headers/retryAfter.js";
import { onAbort } from "../../http/onAbort.js";
import type { Clock } from "../../types.js";
import { bodyStream } from "./body.js";
import { createRandom, type TimeModel, timeModel } from "./chance.js";
import { OriginCounts } from "./counts.js";
import { beginLimit, type NamedQuota, quotaOf, type SiteLimit, type Told } from "./limits.js";
import {
  type Answer,
  type Behaviour,
  type Body,
  type LimitRule,
  answer as readAnswer,
  type Time,
  textBody,
} from "./options.js";
import { httpDate, type Instant, quotaFields, retryAfterText } from "./says.js";
import type { OriginCall, OriginRequest } from "./types.js";

/** A request on its way. */
export interface Incoming {
  readonly url: URL;
  readonly method: string;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
}

/** What the hosts of an origin share. */
export interface Surroundings {
  readonly clock: Clock;
  readonly seed: number;
  readonly maxArrivals: number;
  readonly keepRequests: number;
  /** True wall time minus the clock, in milliseconds, as it was when the origin began. Later changes of the client's wall clock are its own. */
  readonly wallOffsetMs: number;
  readonly all: OriginCounts;
}

/** What a host has decided about a request that arrived. */
interface Arrival {
  readonly request: OriginRequest;
  readonly answer: Answer;
  /** What the test's own function threw instead of answering. */
  readonly problem: { readonly error: unknown } | undefined;
  /** Those to whom the answer's `Retry-After` speaks: the clients of the limits that refuse, else everybody. */
  readonly told: readonly Told[];
  readonly quotas: readonly NamedQuota[];
  readonly end: (untilUs: number) => void;
}

const plain = readAnswer(200, "answers");
/** Statuses whose answer has no body. */
const bodiless: readonly number[] = [204, 205, 304];

/** One host that an origin plays: its limits, its answers, its counts. */
export class Host {
  readonly counts: OriginCounts;
  readonly #name: string;
  readonly #behaviour: Behaviour;
  readonly #around: Surroundings;
  readonly #wallOffsetMs: number;
  readonly #random: () => number;
  readonly #times: Readonly<Record<"travel" | "latency" | "refusal", TimeModel>>;
  /** The clients of each limit. */
  readonly #clients: readonly Map<string, SiteLimit>[];
  readonly #everybody: Told = { toldUntilUs: Number.NEGATIVE_INFINITY };
  #scripted = 0;

  constructor(name: string, behaviour: Behaviour, around: Surroundings) {
    const { latency, refusal, travel, limits } = behaviour;
    const model = (what: string, time: Time): TimeModel =>
      timeModel(time, createRandom(around.seed, `${what} ${name}`));
    const isQueue = typeof latency === "object" && latency.kind === "queue";
    this.#name = name;
    this.#behaviour = behaviour;
    this.#around = around;
    this.#wallOffsetMs = around.wallOffsetMs + behaviour.wallSkewMs;
    this.#random = createRandom(around.seed, `answers ${name}`);
    this.#times = {
      travel: model("travel", travel),
      latency: model("latency", latency),
      refusal: model("refusal", refusal.latency ?? (isQueue ? 0 : latency)),
    };
    this.#clients = limits.map(() => new Map());
    this.counts = new OriginCounts(around.clock, around.keepRequests);
  }

  /**
   * Answers a request as `fetch` does, redirects aside: it travels, arrives and is counted, is held back, is worked on, and
   * is answered. With no time to travel it has arrived when this returns. A request that is aborted before it has arrived
   * never does.
   */
  async answer(incoming: Incoming, signal: AbortSignal | undefined): Promise<Response> {
    signal?.throwIfAborted();
    const { clock } = this.#around;
    const travelMs = this.#times.travel(0);
    if (travelMs > 0) await until(clock, clock.now() + travelMs, signal);
    const arrival = this.#arrive(incoming);
    const { request, answer, problem, end } = arrival;
    try {
      const readyAtMs = request.atMs + request.heldBackMs;
      await until(clock, readyAtMs, signal);
      const { latency, refusal } = this.#times;
      const model = request.refusedBy === undefined ? latency : refusal;
      const never = answer.fault === "timeout" ? Number.POSITIVE_INFINITY : undefined;
      const answerAtMs = readyAtMs + (never ?? answer.latencyMs ?? model(readyAtMs));
      // Known ahead, so that who ends at an instant has left before who arrives at it.
      if (answer.fault !== "stall") end(toUs(answerAtMs + answer.bodyMs));
      await until(clock, answerAtMs, signal);
      if (problem !== undefined) throw problem.error;
      if (answer.fault === "reset") {
        throw new TypeError("fetch failed", { cause: new ConnectionReset("read ECONNRESET") });
      }
      // A clock that stalled is late, one that calls early is not.
      return this.#respond(arrival, Math.max(answerAtMs, clock.now()), signal);
    } catch (error) {
      end(toUs(clock.now()));
      throw error;
    }
  }

  /** Decides and records a request that arrives now. Throws `RangeError` beyond the bound of the origin. */
  #arrive({ url, method, headers }: Incoming): Arrival {
    const { clock, all, maxArrivals } = this.#around;
    if (all.total >= maxArrivals) {
      throw new RangeError(`This origin has counted ${all.total} arrivals, its bound. Raise maxArrivals.`);
    }
    const atMs = clock.now();
    const nowUs = toUs(atMs);
    const limits = this.#behaviour.limits.map((rule, index) => this.#limitOf(rule, this.#clients[index], headers));
    const was = {
      isDuringBan: limits.some((limit) => limit.isBan?.(nowUs)),
      isBeforeRetryAfter: [this.#everybody, ...limits].some(({ toldUntilUs }) => nowUs < toldUntilUs),
    };
    const waitsUs = limits.map((limit) => limit.waitUs(nowUs));
    const refusing = limits.filter((_, index) => waitsUs[index] > 0);
    const taking = refusing.length === 0 ? limits : [];
    const heldBackUs = Math.max(0, ...taking.map((limit) => limit.take?.(nowUs) ?? 0));

    const path = url.pathname + url.search;
    const index = this.counts.total;
    const call = { atMs, method, url: withoutFragment(url), host: this.#name, path, headers, index };
    const { answer, problem } = this.#answerTo(call, refusing.length > 0);
    const request: OriginRequest = {
      ...call,
      status: answer.fault === "reset" || answer.fault === "timeout" ? undefined : answer.status,
      refusedBy: refusing.at(0)?.name,
      trueWaitMs: longestKnown(waitsUs) / 1_000,
      heldBackMs: heldBackUs / 1_000,
      fault: answer.fault,
    };
    const ends = [this.counts, all].map((counts) => counts.add(request, was));
    for (const { inFlight } of taking) if (inFlight !== undefined) ends.push(inFlight.enter(nowUs));
    return {
      request,
      answer,
      problem,
      told: refusing.length > 0 ? refusing : [this.#everybody],
      quotas: limits.flatMap((limit) => quotaOf(limit, nowUs)),
      end: (untilUs) => {
        for (const end of ends) end(untilUs);
      },
    };
  }

  #limitOf(rule: LimitRule, clients: Map<string, SiteLimit>, headers: Incoming["headers"]): SiteLimit {
    const id = rule.countBy === undefined ? "" : (headers[rule.countBy] ?? "");
    const limit = clients.get(id) ?? beginLimit(rule, toUs(this.#wallOffsetMs));
    clients.set(id, limit);
    return limit;
  }

  #answerTo(call: OriginCall, isRefused: boolean): Pick<Arrival, "answer" | "problem"> {
    if (isRefused) {
      const { status } = this.#behaviour.refusal;
      const own = status[Math.min(this.counts.refused, status.length - 1)];
      return { answer: readAnswer({ status: own, body: "Too many requests\n" }, "refusal"), problem: undefined };
    }
    try {
      return { answer: unlessSame(call, this.#chosen(call)), problem: undefined };
    } catch (error) {
      return { answer: readAnswer({ status: 500, body: `${String(error)}\n` }, "answers"), problem: { error } };
    }
  }

  #chosen(call: OriginCall): Answer {
    const { pages, answers, robots } = this.#behaviour;
    const [path] = call.path.split("?", 1);
    const page = pages.get(call.path) ?? pages.get(path);
    if (page !== undefined) return page;
    if (path === "/robots.txt") {
      return readAnswer(robots === undefined ? { status: 404, body: "Not found\n" } : { body: robots }, "robots");
    }
    if (typeof answers === "function") return readAnswer(answers(call, this.#random) ?? 200, "answers(call)");
    const answer = answers.at(this.#scripted) ?? plain;
    this.#scripted = Math.min(this.#scripted + 1, answers.length);
    return answer;
  }

  /** Sends the answer as it goes out at `startMs`. */
  #respond(arrival: Arrival, startMs: number, signal: AbortSignal | undefined): Response {
    const { request, answer, end } = arrival;
    const { status, bodyMs } = answer;
    const written = bodiless.includes(status) ? undefined : (answer.body ?? textBody(`${status} ${request.path}\n`));
    const headers = this.#fields(arrival, written, { nowMs: startMs, wallMs: startMs + this.#wallOffsetMs });
    const body = request.method === "HEAD" ? undefined : written;
    const isStalled = answer.fault === "stall" && body !== undefined;
    if (body !== undefined && (isStalled || bodyMs > 0 || typeof body.content === "number")) {
      const { clock } = this.#around;
      const way = { clock, signal, startMs, sendMs: bodyMs, isStalled, onEnd: () => end(toUs(clock.now())) };
      return new Response(bodyStream(body, way), { status, headers });
    }
    end(toUs(this.#around.clock.now()));
    return new Response(body?.content as Uint8Array<ArrayBuffer> | undefined, { status, headers });
  }

  #fields({ request, answer, told, quotas }: Arrival, body: Body | undefined, instant: Instant) {
    const { refusal, quotaHeaders } = this.#behaviour;
    const { nowMs, wallMs } = instant;
    const letInAtMs = request.atMs + request.trueWaitMs;
    const isRefusal = request.refusedBy !== undefined;
    const retryAfter = isRefusal ? retryAfterText(refusal.retryAfter, letInAtMs, instant) : undefined;
    const fields: Record<string, string> = {
      date: httpDate(wallMs / 1_000),
      ...(quotaHeaders && quotaFields(quotaHeaders, quotas, instant)),
      ...(retryAfter !== undefined && { "retry-after": retryAfter }),
      ...(body && { "content-type": body.type, "content-length": String(body.bytes) }),
      ...answer.headers,
    };
    // Remembered to see who comes all the same.
    const waitMs = parseRetryAfter(fields["retry-after"], wallMs) ?? 0;
    for (const each of told) each.toldUntilUs = Math.max(each.toldUntilUs, toUs(nowMs + waitMs));
    return fields;
  }
}

/** Waits for an instant that is ahead; Infinity: for ever. Rejects when the signal is aborted first. Leaves nothing behind. */
async function until(clock: Clock, atMs: number, signal: AbortSignal | undefined): Promise<void> {
  signal?.throwIfAborted();
  if (atMs <= clock.now()) return;
  await new Promise<void>((resolve, reject) => {
    const wake = (): void => {
      unwatch?.();
      resolve();
    };
    const timer = atMs === Number.POSITIVE_INFINITY ? undefined : clock.setTimer(atMs, wake);
    const giveUp = (): void => {
      clock.clearTimer(timer);
      reject(signal?.reason);
    };
    const unwatch = signal && onAbort(signal, giveUp);
  });
}

/** The longest of the waits that somebody knows; Infinity when nobody knows any; 0 when there is none. */
function longestKnown(waitsUs: readonly number[]): number {
  const known = Math.max(0, ...waitsUs.filter((waitUs) => waitUs < Number.POSITIVE_INFINITY));
  return known > 0 ? known : Math.max(0, ...waitsUs);
}

/** 304 in place of what the client has already. */
function unlessSame({ method, headers }: OriginCall, answer: Answer): Answer {
  const { etag } = answer;
  const wanted = headers["if-none-match"];
  if (etag === undefined || wanted === undefined || (method !== "GET" && method !== "HEAD")) return answer;
  const tags = wanted.split(",").map((tag) => tag.trim().replace(/^W\//, ""));
  const isSame = tags.includes("*") || tags.includes(etag.replace(/^W\//, ""));
  return isSame ? { ...answer, status: 304, body: undefined, bodyMs: 0 } : answer;
}

function withoutFragment(url: URL): string {
  return url.hash === "" ? url.href : url.href.slice(0, -url.hash.length);
}

class ConnectionReset extends Error {
  readonly code = "ECONNRESET";
  readonly errno = -104;
  readonly syscall = "read";
}

/** Whether the site breaks the connection, which rejects as Node's `fetch` does. */
export function isReset(error: unknown): boolean {
  return error instanceof TypeError && error.cause instanceof ConnectionReset;
}
