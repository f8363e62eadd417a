import type { Slowdown } from "../core/key.js";
import type { Follower } from "../engine/limiter.js";
import type { UntimedEvent } from "../observe/types.js";
import type { CompiledPolicy } from "../policy/types.js";
import type { AcquireOptions, Clock, Limiter, Permit, Target } from "../types.js";
import { Exchange, type Gate, registerExchange } from "./exchange.js";
import { PoliteFetch, type Send } from "./fetch.js";
import type { Pacer } from "./pacer.js";

/** Makes what stands between an exchange and the robots.txt of its sites, which it asks for by `send`. */
export type MakeGate = (exchange: Exchange, send: Send) => Gate;

/** What HTTP needs of a limiter beside its verbs. */
export interface Connectable extends Pick<Limiter, "explain"> {
  follower: Follower | undefined;
  /** Calls what is made here. */
  readonly fetch?: Limiter["fetch"];
  readonly policy: CompiledPolicy;
  enter(target: Target, options?: AcquireOptions): Permit | Promise<Permit>;
  keyOf(target: Target): string;
  slowByRobots(target: Target, slowdown: Slowdown | undefined): void;
  tell(event: UntimedEvent): void;
}

/** What HTTP needs beside a limiter. */
export interface HttpParts {
  readonly clock: Clock;
  readonly random: () => number;
  /** Understands how a request to a key was answered. */
  readonly readOutcome: Pacer["readOutcome"];
  /** Sends requests; undefined for the global `fetch` at the time of each call. */
  readonly send: Send | undefined;
  readonly makeGate: MakeGate | undefined;
}

/** Gives a limiter its exchange, through which `fetch` and the adapters go, and returns what its `fetch` does. */
export function connectHttp(limiter: Connectable, parts: HttpParts): Limiter["fetch"] {
  const { clock, random, readOutcome, send, makeGate } = parts;
  const pacer: Pacer = {
    clock,
    random,
    readOutcome,
    http: () => limiter.policy.http,
    enter: (target, options) => limiter.enter(target, options),
    keyOf: (target) => limiter.keyOf(target),
    coolingMs: (target) =>
      Math.max(0, ...limiter.explain(target).causes.map(({ limit, waitMs }) => (limit === "cooldown" ? waitMs : 0))),
    contactWantedBy: (key) => limiter.policy.contactWantedBy(key),
    slowByRobots: (target, slowdown) => limiter.slowByRobots(target, slowdown),
    tell: (event) => limiter.tell(event),
  };
  const exchange = new Exchange(pacer);
  registerExchange(limiter, exchange);
  limiter.follower = exchange;
  const polite = new PoliteFetch(exchange, send);
  if (limiter.fetch !== undefined) polite.isAlso(limiter.fetch);
  exchange.gate = makeGate?.(exchange, polite.send);
  return polite.fetch;
}
