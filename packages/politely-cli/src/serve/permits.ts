import type { Outcome } from "politely";
import { machineTicker, type Ticker } from "../view/ticker.js";
import { Crowd, type InCrowd } from "./crowd.js";
import { type EndedHow, EndedPermits } from "./endedPermits.js";
import { PermitIds } from "./permitIds.js";
import type { ServicePermit } from "./serviceLimiter.js";

/** How a permit ended, or that nobody here knows it. */
export type PermitEnd = { readonly how: EndedHow; readonly agoMs: number } | { readonly how: "unknown" };

/** How permits are kept. */
export interface PermitsOptions {
  /** How many ended permits are remembered, to tell a second release from a foreign one. Default 10,000. */
  readonly remembered?: number;
  /** Default the machine's time. */
  readonly ticker?: Ticker;
  /** Says when a limiter has freed the place of a permit by itself, on the ticker's clock; undefined while it has not. Default: it never does. */
  readonly lapsedAtMs?: (permit: ServicePermit) => number | undefined;
  /** Hears what goes wrong while a place is freed, which nobody waits for. */
  readonly onFailure: (error: unknown) => void;
}

/** A permit that somebody holds. */
interface Held extends InCrowd {
  readonly id: string;
  /** Where it is kept. */
  readonly slot: number;
  readonly permit: ServicePermit;
  ttlMs: number;
  /** The tick in which it lapses. */
  tick: number;
}

/** The time between two looks: a permit lapses at most twice this after its lifetime, and never before. */
const TICK_MS = 100;

/**
 * The permits that were granted and not yet released, by an id that cannot be guessed.
 *
 * Each has a lifetime. At its end the place is free again; nothing is given back and nothing is learned. One timer serves all of them, and
 * runs only while there are some. How many there may be is up to who adds them. One whose place the limiter has freed before is not held any more when somebody asks for it.
 */
export class Permits {
  /** How many have lapsed here; the limiter counts those that it frees itself. */
  lapsedCount = 0;
  /** The slot of each. Numbers, for the reason that a crowd is no set. */
  readonly #slots = new Map<string, number>();
  readonly #held: (Held | undefined)[] = [];
  readonly #freeSlots: number[] = [];
  /** Who lapses in which tick. */
  readonly #due = new Map<number, Crowd<Held>>();
  readonly #ids = new PermitIds();
  readonly #ended: EndedPermits;
  readonly #ticker: Ticker;
  readonly #onFailure: (error: unknown) => void;
  readonly #lapsedAtMs: (permit: ServicePermit) => number | undefined;
  #lastTick = 0;
  #stopTicking: (() => void) | undefined = undefined;
  #emptied: (() => void)[] = [];

  constructor(options: PermitsOptions) {
    this.#ended = new EndedPermits(options.remembered ?? 10_000);
    this.#ticker = options.ticker ?? machineTicker;
    this.#onFailure = options.onFailure;
    this.#lapsedAtMs = options.lapsedAtMs ?? (() => undefined);
  }

  /** How many are held. */
  get size(): number {
    return this.#slots.size;
  }

  /** Keeps a permit for `ttlMs`, and gives its id: 22 characters, 128 random bits. */
  add(permit: ServicePermit, ttlMs: number): string {
    const id = this.#ids.next();
    const slot = this.#freeSlots.pop() ?? this.#held.length;
    const held: Held = { id, slot, permit, ttlMs, tick: 0, place: -1 };
    this.#held[slot] = held;
    this.#slots.set(id, slot);
    this.#schedule(held);
    return id;
  }

  /** Begins the lifetime anew, with another length if one is given. Answers its length; undefined when the permit is not held. */
  renew(id: string, ttlMs?: number): number | undefined {
    const held = this.#living(id);
    if (held === undefined) return undefined;
    held.ttlMs = ttlMs ?? held.ttlMs;
    this.#unschedule(held);
    this.#schedule(held);
    return held.ttlMs;
  }

  /** Takes a permit out, for its holder to release. Undefined when it is not held: `endOf` says why. */
  take(id: string): ServicePermit | undefined {
    return this.#living(id) === undefined ? undefined : this.#end(id, "released")?.permit;
  }

  /** Gives back a permit that never reached its caller, as unused. Does nothing when it is not held. */
  takeBack(id: string): void {
    const held = this.#end(id, "undelivered");
    if (held !== undefined) this.#free(held.permit, "unused");
  }

  /** How a permit ended that is not held. The last 10,000 are remembered. */
  endOf(id: string): PermitEnd {
    const ended = this.#ended.find(id);
    if (ended === undefined) return { how: "unknown" };
    return { how: ended.how, agoMs: this.#ticker.nowMs() - ended.atMs };
  }

  /** Resolves once nobody holds a permit. */
  emptied(): Promise<void> {
    if (this.size === 0) return Promise.resolve();
    return new Promise((resolve) => {
      this.#emptied.push(resolve);
    });
  }

  /** Frees the places of all, as if each had lapsed. */
  lapseAll(): void {
    for (const id of this.#slots.keys()) this.#lapse(id);
  }

  #find(id: string): Held | undefined {
    const slot = this.#slots.get(id);
    return slot === undefined ? undefined : this.#held[slot];
  }

  /** The same, unless the limiter has freed its place: then it ends here too. */
  #living(id: string): Held | undefined {
    const held = this.#find(id);
    if (held === undefined || this.#lapsedAtMs(held.permit) === undefined) return held;
    this.#lapse(id);
    return undefined;
  }

  #schedule(held: Held): void {
    const nowMs = this.#ticker.nowMs();
    if (this.#stopTicking === undefined) {
      this.#lastTick = Math.floor(nowMs / TICK_MS);
      this.#stopTicking = this.#ticker.every(TICK_MS, () => this.#look());
    }
    held.tick = Math.ceil((nowMs + held.ttlMs) / TICK_MS);
    const due = this.#due.get(held.tick) ?? new Crowd<Held>();
    if (due.size === 0) this.#due.set(held.tick, due);
    due.add(held);
  }

  #unschedule(held: Held): void {
    const due = this.#due.get(held.tick);
    due?.remove(held);
    if (due?.size === 0) this.#due.delete(held.tick);
  }

  #look(): void {
    const tick = Math.floor(this.#ticker.nowMs() / TICK_MS);
    // After a long sleep of the machine there are more ticks to catch up with than there are sets.
    if (tick - this.#lastTick > this.#due.size) {
      for (const at of this.#due.keys()) if (at <= tick) this.#lapseTick(at);
    } else {
      for (let at = this.#lastTick + 1; at <= tick; at++) this.#lapseTick(at);
    }
    this.#lastTick = tick;
  }

  #lapseTick(tick: number): void {
    for (const { id } of this.#due.get(tick)?.toArray() ?? []) this.#lapse(id);
  }

  #lapse(id: string): void {
    const permit = this.#find(id)?.permit;
    const freedAtMs = permit === undefined ? undefined : this.#lapsedAtMs(permit);
    const held = this.#end(id, "lapsed", freedAtMs);
    if (held === undefined) return;
    if (freedAtMs === undefined) this.lapsedCount++;
    this.#free(held.permit, undefined);
  }

  #end(id: string, how: EndedHow, atMs = this.#ticker.nowMs()): Held | undefined {
    const held = this.#find(id);
    if (held === undefined) return undefined;
    this.#slots.delete(id);
    this.#held[held.slot] = undefined;
    this.#freeSlots.push(held.slot);
    this.#unschedule(held);
    this.#ended.add(id, how, atMs);
    if (this.size === 0) {
      this.#stopTicking?.();
      this.#stopTicking = undefined;
      for (const resolve of this.#emptied.splice(0)) resolve();
    }
    return held;
  }

  #free(permit: ServicePermit, outcome: Outcome | undefined): void {
    try {
      const done = permit.release(outcome);
      if (done instanceof Promise) done.catch(this.#onFailure);
    } catch (error) {
      this.#onFailure(error);
    }
  }
}
