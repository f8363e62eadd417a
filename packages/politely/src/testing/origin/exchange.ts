import { toUs } from "../../engine/systemClock.js";
import type { Host, Incoming, Outgoing, Plan } from "./host.js";
import type { Site } from "./site.js";

/** How a connection breaks. */
export type Breakage = "ECONNRESET" | "ECONNREFUSED";

/** Who gets what an exchange comes to. One of the three is called, once, or none if nothing ever comes. */
export interface Receiver {
  /** The headers go out now; the body follows as it says. */
  answer(outgoing: Outgoing): void;
  break(code: Breakage): void;
  /** The test itself is wrong: a bound was passed, or its function threw. */
  fail(error: unknown): void;
}

/** One request's way through a site: it travels, arrives, is held back, is worked on, and is answered. */
export class Exchange {
  readonly #site: Site;
  readonly #receiver: Receiver;
  readonly #incoming: Incoming;
  #timer: unknown;
  #plan: Plan | undefined;
  #isTravelling = false;

  constructor(site: Site, incoming: Incoming, receiver: Receiver) {
    this.#site = site;
    this.#incoming = incoming;
    this.#receiver = receiver;
  }

  /** Sends the request on its way. With no time to travel it has arrived when this returns, and with no latency it is answered. */
  start(): void {
    if (this.#site.isFull) {
      this.#receiver.break("ECONNREFUSED");
      return;
    }
    this.#guarded(() => {
      const host = this.#site.hostOf(this.#incoming);
      const travelMs = host.nextTravelMs();
      if (travelMs === 0) {
        this.#arrive(host);
        return;
      }
      this.#isTravelling = true;
      this.#site.travelling += 1;
      this.#at(this.#site.clock.now() + travelMs, () => this.#guarded(() => this.#arrive(host)));
    });
  }

  /** The client goes away, or the body has ended. Who has not arrived never does. */
  end(): void {
    this.#stopTravelling();
    this.#site.clock.clearTimer(this.#timer);
    this.#plan?.flight.end();
  }

  #arrive(host: Host): void {
    this.#stopTravelling();
    const plan = host.arrive(this.#incoming);
    this.#plan = plan;
    if (plan.request.heldBackMs > 0) this.#at(plan.readyAtMs, () => this.#work(host, plan));
    else this.#work(host, plan);
  }

  #work(host: Host, plan: Plan): void {
    const answerAtMs = host.answerAtMs(plan);
    if (answerAtMs === Number.POSITIVE_INFINITY) return;
    const sendMs = plan.answer.body?.sendMs ?? 0;
    // Known ahead, so that who ends at an instant has left before who arrives at it.
    plan.flight.endAt(plan.answer.fault === "stall" ? Number.POSITIVE_INFINITY : toUs(answerAtMs + sendMs));
    if (answerAtMs > this.#site.clock.now()) this.#at(answerAtMs, () => this.#answer(host, plan, answerAtMs));
    else this.#answer(host, plan, answerAtMs);
  }

  #answer(host: Host, plan: Plan, answerAtMs: number): void {
    if (plan.problem !== undefined) {
      plan.flight.end();
      this.#receiver.fail(plan.problem.error);
      return;
    }
    if (plan.answer.fault === "reset") {
      plan.flight.end();
      this.#receiver.break("ECONNRESET");
      return;
    }
    // A clock that stalled is late, one that calls early is not.
    const outgoing = host.outgoing(plan, Math.max(answerAtMs, this.#site.clock.now()));
    if (!outgoing.isStalled && (outgoing.body?.sendMs ?? 0) === 0) plan.flight.end();
    this.#receiver.answer(outgoing);
  }

  #at(atMs: number, fn: () => void): void {
    this.#timer = this.#site.clock.setTimer(atMs, fn);
  }

  #guarded(step: () => void): void {
    try {
      step();
    } catch (error) {
      this.#stopTravelling();
      this.#receiver.fail(error);
    }
  }

  #stopTravelling(): void {
    if (!this.#isTravelling) return;
    this.#isTravelling = false;
    this.#site.travelling -= 1;
  }
}
