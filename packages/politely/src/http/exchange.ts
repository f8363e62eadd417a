import type { Loan } from "../engine/limiter.js";
import type { AcquireOptions, FetchOptions, Permit, Target } from "../types.js";
import { Flight } from "./flight.js";
import { Identity } from "./identity.js";
import type { Pacer } from "./pacer.js";
import { Retrier } from "./retrier.js";
import { Underway } from "./underway.js";

/** A request that is about to be made, whoever makes it. */
export interface Errand {
  /** Absolute. */
  readonly url: string;
  readonly signal?: AbortSignal | undefined;
  /** The User-Agent it brings along, asked only when it matters. */
  readonly ownAgent?: () => string | null | undefined;
  readonly options?: FetchOptions | undefined;
  /** What it goes through instead of the platform's own connections, as undici has it; its robots.txt is asked for the same way. */
  readonly dispatcher?: unknown;
  /** A start that is had already, while robots.txt was not asked. */
  readonly turn?: Flight | undefined;
}

/** What a dispatcher need not wait for. */
export interface Taken {
  readonly flight: Flight;
  /** Whether it may be used at once: nobody minds robots.txt, or it was asked before. */
  readonly isAsked: boolean;
}

/** Tells a dispatcher on whose behalf it is called, however many promises lie between. */
export interface Relay {
  /** Sends a request that was admitted. */
  send<Value>(url: string, flight: Flight, send: () => Promise<Value>): Promise<Value>;
  /** Lends the permit of a task to its first request. */
  lend(target: Target, permit: Permit): Loan;
  /**
   * The flight of the request that a dispatcher is given, if that was admitted before: the first one of its key that is
   * dispatched on behalf of a request or a task. What repeats or redirects it has to be admitted by itself.
   */
  take(url: string): Taken | undefined;
}

/** Stands between a site's robots.txt and the requests. */
export interface Gate {
  /** Admits what the site's robots.txt allows, when it allows it. Rejects as `admit` does; it has taken nothing then. */
  enter(errand: Errand): Promise<Flight>;
  /** Another policy is in force: what is not obeyed any more holds nobody, from now on. */
  configured(): void;
  /** Nobody gets in any more. */
  close(): void;
}

/**
 * The one way of every request, whichever client sends it: admit, send, observe, release.
 *
 * `admit` waits until robots.txt and the limiter allow the request; the `Flight` it gives then hears the answer and ends
 * with the last byte.
 */
export class Exchange {
  readonly identity: Identity;
  /** One for all clients of a limiter, so that they share the budgets of their hosts. */
  readonly retrier: Retrier;
  /** Set once there is somebody who can fetch a robots.txt. */
  gate: Gate | undefined = undefined;
  /** Set once a dispatcher is paced by the same limiter. */
  relay: Relay | undefined = undefined;
  /** What comes to the limiter again by itself. */
  readonly underway = new Underway();

  constructor(readonly pacer: Pacer) {
    this.identity = new Identity(pacer);
    this.retrier = new Retrier(pacer, this.underway);
  }

  /** Waits until the request may start, and counts it. Rejects as `acquire` does, and with `RobotsError`; it has taken nothing then. */
  async admit(errand: Errand): Promise<Flight> {
    return this.enter(errand);
  }

  /** The same without a promise where none is needed: admits at once, or promises to. Throws when it is refused at once. */
  enter(errand: Errand): Flight | Promise<Flight> {
    const { gate } = this;
    return gate !== undefined && this.pacer.http().robots !== undefined
      ? this.#enterAsked(gate, errand)
      : this.enterUnasked(errand);
  }

  async #enterAsked(gate: Gate, errand: Errand): Promise<Flight> {
    this.underway.begin(errand, this.pacer.keyOf(errand.url));
    try {
      return await gate.enter(errand);
    } finally {
      this.underway.end(errand);
    }
  }

  /** The limiter has got another policy. */
  configured(): void {
    this.gate?.configured();
  }

  /** The limiter is closed: nobody waits for robots.txt or a repetition any longer. */
  closed(): void {
    this.gate?.close();
    this.retrier.close();
  }

  /** Undefined when nothing comes to the limiter again by itself, at one key or at all; else resolves when something of that is over. */
  resting(key: string | undefined): Promise<void> | undefined {
    return this.underway.nextEnd(key);
  }

  /**
   * Sends a request that has been admitted already through the platform's `fetch`.
   *
   * Where that goes through a dispatcher which the same limiter paces, the request must not wait a second time, for itself.
   */
  sendOwn<Value>(url: string, flight: Flight, send: () => Promise<Value>): Promise<Value> {
    return this.relay === undefined ? send() : this.relay.send(url, flight, send);
  }

  /** The same without a look at robots.txt. */
  enterUnasked(errand: Errand): Flight | Promise<Flight> {
    const { url, signal, options } = errand;
    const permit =
      options === undefined && signal === undefined
        ? this.pacer.enter(url)
        : this.pacer.enter(targetOf(url, options), acquireOptions(signal, options));
    return permit instanceof Promise
      ? permit.then((granted) => this.#begin(granted, errand))
      : this.#begin(permit, errand);
  }

  #begin(permit: Permit, { signal, ownAgent }: Errand): Flight {
    this.identity.look(permit.key, ownAgent);
    const flight = new Flight(permit, this.pacer.clock);
    if (signal?.aborted !== true) return flight;
    // Given up between the grant and the send.
    flight.unused();
    throw signal.reason;
  }
}

function targetOf(url: string, options: FetchOptions | undefined): Target {
  const { intent, scopes } = options ?? {};
  if (intent === undefined && scopes === undefined) return url;
  return { url, ...(intent === undefined ? {} : { intent }), ...(scopes === undefined ? {} : { scopes }) };
}

function acquireOptions(signal: AbortSignal | undefined, options: FetchOptions | undefined): AcquireOptions {
  const { maxWait, priority, cost } = options ?? {};
  return { signal, maxWait, priority, cost };
}

const exchanges = new WeakMap<object, Exchange>();

/** Remembers the exchange of a limiter, for the adapters. */
export function registerExchange(limiter: object, exchange: Exchange): void {
  exchanges.set(limiter, exchange);
}

/** The exchange of a limiter that `politely` or `limit` made. Throws `TypeError`, naming who asks, for anything else. */
export function exchangeOf(limiter: unknown, who: string): Exchange {
  const exchange = typeof limiter === "object" && limiter !== null ? exchanges.get(limiter) : undefined;
  if (exchange !== undefined) return exchange;
  throw new TypeError(`${who} needs a limiter made by politely() or limit(); got ${String(limiter)}.`);
}
