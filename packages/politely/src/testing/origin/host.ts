import { toUs } from "../../engine/systemClock.js";
import { parseRetryAfter } from "../../http/headers/retryAfter.js";
import type { Clock } from "../../types.js";
import { ClientLimits, type Verdict } from "./clientLimits.js";
import { Flight } from "./inFlight.js";
import { createLatency, type LatencyModel } from "./latency.js";
import { createRandom } from "./random.js";
import { hasNoBody, readAnswer, textBody } from "./readAnswer.js";
import type { AnswerRule, Behaviour, BodyRule } from "./rules.js";
import { httpDate, type Instant, quotaFields, retryAfterText } from "./says.js";
import { Tally } from "./tally.js";
import type { OriginBounds, OriginCall, OriginFault, OriginRequest } from "./types.js";

/** A request on its way. */
export interface Incoming {
  readonly url: URL;
  readonly method: string;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
}

/** The bounds of an origin with all defaults filled in. */
export type Bounds = Required<Omit<OriginBounds, "clock">>;

/** What the hosts of an origin share. */
export interface Surroundings {
  readonly clock: Clock;
  readonly bounds: Bounds;
  /** True wall time minus the clock, in milliseconds, as it was when the origin began. Later changes of the client's wall clock are its own. */
  readonly wallOffsetMs: number;
  readonly all: Tally;
}

/** What a host has decided about a request that arrived. */
export interface Plan {
  readonly request: OriginRequest;
  readonly flight: Flight;
  /** When the site begins to work on it. */
  readonly readyAtMs: number;
  readonly answer: AnswerRule;
  readonly verdict: Verdict;
  /** What the test's own function threw instead of answering. */
  readonly problem: { readonly error: unknown } | undefined;
}

/** An answer at the moment its headers go out. */
export interface Outgoing {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** Undefined: there is none. */
  readonly body: BodyRule | undefined;
  readonly isStalled: boolean;
  readonly startMs: number;
}

/** One host that an origin plays: its limits, its answers, its counts. */
export class Host {
  readonly tally: Tally;
  readonly name: string;
  readonly #behaviour: Behaviour;
  readonly #around: Surroundings;
  readonly #limits: ClientLimits;
  readonly #latency: LatencyModel;
  readonly #refusalLatency: LatencyModel;
  readonly #travel: LatencyModel;
  readonly #random: () => number;
  readonly #wallOffsetMs: number;
  #scripted = 0;
  #toldUntilUs = Number.NEGATIVE_INFINITY;

  constructor(name: string, behaviour: Behaviour, around: Surroundings) {
    const { seed, maxClients, keepRequests } = around.bounds;
    this.name = name;
    this.#behaviour = behaviour;
    this.#around = around;
    this.#wallOffsetMs = around.wallOffsetMs + behaviour.wallSkewMs;
    this.#limits = new ClientLimits(behaviour.limits, { wallOffsetUs: toUs(this.#wallOffsetMs), maxClients });
    this.#latency = createLatency(behaviour.latency, createRandom(seed, `latency ${name}`));
    this.#refusalLatency = createLatency(behaviour.refusal.latency, createRandom(seed, `refusal ${name}`));
    this.#travel = createLatency(behaviour.travel, createRandom(seed, `travel ${name}`));
    this.#random = createRandom(seed, `answers ${name}`);
    this.tally = new Tally(around.clock, keepRequests);
  }

  /** How long the next request is on its way. */
  nextTravelMs(): number {
    return this.#travel.nextMs(0);
  }

  /** Decides and records a request that arrives now. Throws `RangeError` beyond a bound of the origin. */
  arrive(incoming: Incoming): Plan {
    const { clock, bounds, all } = this.#around;
    if (all.total >= bounds.maxArrivals) {
      throw new RangeError(`This origin has counted ${all.total} arrivals, its bound. Raise maxArrivals.`);
    }
    const atMs = clock.now();
    const atUs = toUs(atMs);
    const verdict = this.#limits.arrive(incoming.headers, atUs);
    const call = this.#callOf(incoming, atMs);
    const { answer, problem } = this.#answerTo(call, verdict);
    const request: OriginRequest = {
      ...call,
      status: answer.fault === "reset" || answer.fault === "timeout" ? undefined : answer.status,
      refusedBy: verdict.refusedBy?.name,
      trueWaitMs: verdict.waitUs / 1_000,
      heldBackMs: verdict.heldBackUs / 1_000,
      fault: answer.fault,
    };
    const was = {
      isDuringBan: verdict.wasBanned,
      isBeforeRetryAfter: verdict.isBeforeRetryAfter || atUs < this.#toldUntilUs,
    };
    for (const tally of [this.tally, all]) tally.add(request, atUs, was);
    const flight = new Flight([this.tally.flights, all.flights, ...verdict.counts], atUs);
    return { request, flight, readyAtMs: atMs + request.heldBackMs, answer, verdict, problem };
  }

  /** When the answer's headers go out; Infinity: never. To be asked once, when the site begins to work on it. */
  answerAtMs({ readyAtMs, answer, verdict }: Plan): number {
    if (answer.fault === "timeout") return Number.POSITIVE_INFINITY;
    if (answer.latencyMs !== undefined) return readyAtMs + answer.latencyMs;
    const model = verdict.refusedBy === undefined ? this.#latency : this.#refusalLatency;
    return readyAtMs + model.nextMs(readyAtMs);
  }

  /** Writes the answer as it goes out at `startMs`. */
  outgoing({ answer, verdict, request }: Plan, startMs: number): Outgoing {
    const { refusal, quotaHeaders, headers, hasDate } = this.#behaviour;
    const instant: Instant = { nowMs: startMs, wallMs: startMs + this.#wallOffsetMs };
    const isRefusal = verdict.refusedBy !== undefined;
    const fields: Record<string, string> = { ...headers };
    if (hasDate) fields.date = httpDate(Math.floor(instant.wallMs / 1_000));
    if (quotaHeaders !== undefined && (isRefusal || !quotaHeaders.onlyRefusals)) {
      Object.assign(fields, quotaFields(quotaHeaders, verdict.quotas, instant));
    }
    if (isRefusal) {
      const retryAfter = retryAfterText(refusal.retryAfter, request.atMs + request.trueWaitMs, instant);
      if (retryAfter !== undefined) fields["retry-after"] = retryAfter;
    }
    const body = hasNoBody(answer.status) ? undefined : (answer.body ?? plainBody(answer.status, request.path));
    if (body !== undefined) {
      if (body.type !== undefined) fields["content-type"] = body.type;
      fields["content-length"] = String(typeof body.content === "number" ? body.content : body.content.length);
    }
    Object.assign(fields, answer.headers);
    this.#remember(fields["retry-after"], verdict, instant);
    const sent = request.method === "HEAD" ? undefined : body;
    const isStalled = answer.fault === "stall" && sent !== undefined;
    return { status: answer.status, headers: fields, body: sent, isStalled, startMs };
  }

  /** Remembers until when the answer tells its client to stay away, to see who comes all the same. */
  #remember(retryAfter: string | undefined, verdict: Verdict, { nowMs, wallMs }: Instant): void {
    const waitMs = parseRetryAfter(retryAfter, wallMs);
    if (waitMs === null) return;
    const untilUs = toUs(nowMs + waitMs);
    if (verdict.refusedBy === undefined) this.#toldUntilUs = Math.max(this.#toldUntilUs, untilUs);
    else verdict.tell(untilUs);
  }

  #callOf({ url, method, headers }: Incoming, atMs: number): OriginCall {
    const path = url.pathname + url.search;
    return { atMs, method, url: withoutFragment(url), host: this.name, path, headers, index: this.tally.total };
  }

  #answerTo(call: OriginCall, verdict: Verdict): Pick<Plan, "answer" | "problem"> {
    if (verdict.refusedBy !== undefined) return { answer: this.#refusal(verdict.refusedBy.status), problem: undefined };
    try {
      return { answer: unlessSame(call, this.#chosen(call)), problem: undefined };
    } catch (error) {
      return { answer: { ...bare(500), body: textBody(`${String(error)}\n`) }, problem: { error } };
    }
  }

  #refusal(ownStatus: number | undefined): AnswerRule {
    const { statuses, body } = this.#behaviour.refusal;
    const status = ownStatus ?? statuses[Math.min(this.tally.refused, statuses.length - 1)];
    return { ...bare(status), body };
  }

  #chosen(call: OriginCall): AnswerRule {
    const { pages, answers } = this.#behaviour;
    const page = pages.get(call.path) ?? pages.get(call.path.split("?", 1)[0]);
    if (page !== undefined) return page;
    if (typeof answers === "function") return readAnswer("answers(call)", answers(call, this.#random) ?? 200);
    const answer = answers.at(this.#scripted) ?? bare(200);
    this.#scripted = Math.min(this.#scripted + 1, answers.length);
    return answer;
  }
}

/** An answer with nothing but its status. */
function bare(status: number): AnswerRule {
  const fault: OriginFault | undefined = undefined;
  return { status, headers: {}, body: undefined, etag: undefined, latencyMs: undefined, fault };
}

function plainBody(status: number, path: string): BodyRule {
  return textBody(`${status} ${path}\n`);
}

/** 304 in place of what the client has already. */
function unlessSame({ method, headers }: OriginCall, answer: AnswerRule): AnswerRule {
  const { etag } = answer;
  const wanted = headers["if-none-match"];
  if (etag === undefined || wanted === undefined || (method !== "GET" && method !== "HEAD")) return answer;
  const tags = wanted.split(",").map((tag) => tag.trim().replace(/^W\//, ""));
  const isSame = tags.includes("*") || tags.includes(etag.replace(/^W\//, ""));
  return isSame ? { ...answer, status: 304, body: undefined } : answer;
}

function withoutFragment(url: URL): string {
  return url.hash === "" ? url.href : url.href.slice(0, -url.hash.length);
}
