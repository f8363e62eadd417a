import type { Sender, TakeReply } from "../../shared/operation.js";
import { isFollowed } from "../../shared/ruleNumbers.js";
import { placeName } from "../../shared/take.js";
import type { Link, SendSurely } from "./link.js";
import type { Plan, PlanKey } from "./plan.js";
import { placesOnly, withoutPlace, withoutStarts } from "./renewalPlaces.js";

/** Places that are taken again in one operation, at most. */
const TOGETHER_MOST = 500;
/** The least and the most time between two questions for places at a key. */
const POLL_LEAST_MS = 10;
const POLL_MOST_MS = 1_000;

/** A place that a permit should have in the store, at all its keys or at one of them. */
export interface Spot {
  readonly storeKeys: readonly string[];
  /** The key, where the place stands in for one that lapsed; undefined where it is the one that came with the start. */
  readonly key: PlanKey | undefined;
  readonly leaseUs: number;
  /** When it is to be given up, on this process's clock. */
  readonly holdUntilMs: number;
  /** Its name; undefined while the store has none. */
  place: string | undefined;
  /** By this process's clock it has not lapsed before. */
  freshUntilMs: number;
  /** Nobody needs it any more. */
  isGone: boolean;
}

/** The spots of a permit whose place has lapsed, or that the store never knew of: one at each key where places count. */
export function spotsOf({ keys, storeKeys, leaseUs }: Plan, holdUntilMs: number): Spot[] {
  return keys.flatMap((key, index) => {
    if (!isFollowed(key.shared)) return [];
    const whose = { storeKeys: [storeKeys[index]], key, leaseUs, holdUntilMs };
    return [{ ...whose, place: undefined, freshUntilMs: Number.POSITIVE_INFINITY, isGone: false }];
  });
}

/**
 * Spots without a place: tasks that run, while the store may give their places to others.
 *
 * They stand first in the line of their key, and are taken again as soon as there is room, before this process starts anything else there. What is taken is
 * given back with `free`. The timers do not keep the process alive.
 */
export class ShortSpots {
  readonly #byKey = new Map<string, Set<Spot>>();
  readonly #asking = new Map<string, Promise<TakeReply | undefined>>();
  readonly #timers = new Map<string, unknown>();
  /** The keys of which it was said. */
  readonly #said = new Set<string>();

  constructor(readonly link: Link) {}

  /** The keys at which places are missing. */
  get keys(): string[] {
    return [...this.#byKey.keys()];
  }

  get isEmpty(): boolean {
    return this.#byKey.size === 0;
  }

  has(storeKey: string): boolean {
    return this.#byKey.has(storeKey);
  }

  /** Whether it was not yet said that places are missing at a key, since there were none missing. */
  isNews(storeKey: string): boolean {
    const isNews = !this.#said.has(storeKey);
    this.#said.add(storeKey);
    return isNews;
  }

  add(spot: Spot): void {
    const [storeKey] = spot.storeKeys;
    const spots = this.#byKey.get(storeKey);
    if (spots === undefined) this.#byKey.set(storeKey, new Set([spot]));
    else spots.add(spot);
  }

  /** A spot is needed no more: its place goes back, now or when the store is there again. */
  free(spot: Spot): void {
    const { key, place, storeKeys } = spot;
    spot.isGone = true;
    this.#remove(spot);
    if (key === undefined || place === undefined) return;
    spot.place = undefined;
    void this.link.sendOrKeep(storeKeys, (by) => withoutPlace(key, place, by));
  }

  /** Takes places again at a key. Resolves to what the store said where some are still missing, else to undefined. One question at a time. */
  regain(storeKey: string, send: SendSurely): Promise<TakeReply | undefined> {
    let asking = this.#asking.get(storeKey);
    if (asking === undefined) {
      asking = this.#regain(storeKey, send).finally(() => this.#asking.delete(storeKey));
      this.#asking.set(storeKey, asking);
    }
    return asking;
  }

  async #regain(storeKey: string, send: SendSurely): Promise<TakeReply | undefined> {
    for (;;) {
      const spots = [...(this.#byKey.get(storeKey) ?? [])].slice(0, TOGETHER_MOST);
      const key = spots[0]?.key;
      if (key === undefined) return undefined;
      const reply = await this.#take(spots, key, send);
      if (reply.starts.length === spots.length) continue;
      this.#regainLater(storeKey, reply);
      return reply;
    }
  }

  /** Asks again when the store said to, whoever else in this process asks. When it is away, nobody does before it is back. */
  #regainLater(storeKey: string, { stop, nowUs }: TakeReply): void {
    const { clock } = this.link.parts;
    if (!this.has(storeKey) || this.#timers.has(storeKey)) return;
    const waitMs = ((stop?.turnUs ?? nowUs) - nowUs) / 1000;
    const dueMs = clock.now() + Math.max(POLL_LEAST_MS, Math.min(POLL_MOST_MS, waitMs));
    const timer = clock.setTimer(dueMs, () => {
      this.#timers.delete(storeKey);
      this.regain(storeKey, (keys, make) => this.link.send(keys, make)).catch(() => undefined);
    });
    this.#timers.set(storeKey, timer);
    clock.unref?.(timer);
  }

  async #take(spots: readonly Spot[], key: PlanKey, send: SendSurely): Promise<TakeReply> {
    const nowMs = this.link.parts.clock.now();
    const [{ storeKeys, leaseUs }] = spots;
    const leftMs = Math.max(...spots.map(({ holdUntilMs }) => holdUntilMs - nowMs));
    const ticket = `${this.link.parts.process}/places`;
    const terms = { count: spots.length, ticket, leaseUs, maxHoldUs: Math.max(1, Math.ceil(leftMs * 1000)) };
    let taker: Sender = { asker: "", sequence: 0 };
    const reply = await send(storeKeys, (by) => {
      taker = by;
      return placesOnly(key, terms, by);
    });
    if (reply.starts.length === 0) return reply;
    spots.slice(0, reply.starts.length).forEach((spot, number) => {
      spot.place = placeName(taker, number);
      spot.freshUntilMs = nowMs + leaseUs / 1000;
      this.#remove(spot);
      // It was released meanwhile.
      if (spot.isGone) this.free(spot);
    });
    await send(storeKeys, (by) => withoutStarts(key, taker, reply, by));
    return reply;
  }

  #remove(spot: Spot): void {
    const [storeKey] = spot.storeKeys;
    const spots = this.#byKey.get(storeKey);
    if (spots?.delete(spot) !== true || spots.size > 0) return;
    this.#byKey.delete(storeKey);
    this.#said.delete(storeKey);
    const timer = this.#timers.get(storeKey);
    if (this.#timers.delete(storeKey)) this.link.parts.clock.clearTimer(timer);
  }
}
