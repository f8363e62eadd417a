import type { Rule } from "../core/rule.js";
import { PLACE_LEAST_US, type RenewedPlace, type RenewOperation } from "../stores/operations.js";
import type { Clock } from "../types.js";
import type { Link, Send } from "./link.js";
import type { SharedStart } from "./sharedStart.js";

/** What this process has at one key. */
interface Held {
  readonly rule: Rule;
  readonly slots: Set<number>;
  readonly places: Map<string, RenewedPlace>;
}

/** What a process has to do for its places now and then. */
export interface PlacesOwner {
  /** Somebody's turn has come, since a place is free. */
  woken(asker: string): void;
  /** Time has passed for the places at this row. */
  lapse(slot: number): void;
}

/**
 * The places that this process holds in the store. It names them three times in their lifetime, so that a killed process loses them and a living one does not.
 *
 * A store that has forgotten one takes it again, and frees those of this process that are not named. The timer does not keep the process alive.
 */
export class Places {
  readonly #held = new Map<string, Held>();
  #timer: unknown = undefined;
  /** When it fires, by this process's clock. */
  #dueUs = 0;
  owner: PlacesOwner | undefined = undefined;

  constructor(
    readonly clock: Clock,
    readonly link: Link,
    readonly process: string,
  ) {}

  add({ keys, rules, slots, costs, place, startedUs }: SharedStart): void {
    keys.forEach((key, index) => {
      const rule = rules[index];
      const held = this.#at(key, rule);
      held.slots.add(slots[index]);
      const units = costs[index].window;
      const pendingUnits = rule.fromAnswer ? units : 0;
      const ttlUs = Math.max(PLACE_LEAST_US, rule.permitTtlUs);
      held.places.set(place, { id: place, startedUs, units, pendingUnits, maxHoldUs: rule.maxHoldUs, ttlUs });
      // One that lives shorter than the others is named sooner.
      if (this.clock.now() * 1000 + Math.min(ttlUs / 3, rule.maxHoldUs) < this.#dueUs) this.#disarm();
    });
    this.#arm();
  }

  #disarm(): void {
    if (this.#timer !== undefined) this.clock.clearTimer(this.#timer);
    this.#timer = undefined;
  }

  remove({ keys, place }: SharedStart): void {
    for (const key of keys) {
      const held = this.#held.get(key);
      held?.places.delete(place);
      if (held?.places.size === 0) this.#held.delete(key);
    }
    this.stopIfFree();
  }

  /** A place may have been taken at these keys of which no reply told: with the next renewal of all it is free. */
  doubt(keys: readonly string[], rules: readonly Rule[]): void {
    for (const [index, key] of keys.entries()) this.#at(key, rules[index]);
  }

  has(key: string): boolean {
    return this.#held.has(key);
  }

  #at(key: string, rule: Rule): Held {
    const known = this.#held.get(key);
    if (known !== undefined) return known;
    const held: Held = { rule, slots: new Set(), places: new Map() };
    this.#held.set(key, held);
    return held;
  }

  /** Says at every key which places this process has there. Rejects when some could not be told, after all were tried. */
  async renewAll(send: Send = this.link.send): Promise<void> {
    const told = await Promise.allSettled(Array.from(this.#held, ([key, held]) => this.#renew(send, key, held)));
    const failed = told.find((one) => one.status === "rejected");
    if (failed !== undefined) throw failed.reason;
  }

  async #renew(send: Send, key: string, held: Held): Promise<void> {
    const { places, rule } = held;
    const { completeBefore } = this.link;
    const nowUs = this.link.offsetUs + this.clock.now() * 1000;
    for (const [id, { startedUs, maxHoldUs }] of places) if (startedUs + maxHoldUs <= nowUs) places.delete(id);
    await this.#tell(send, [key], [rule], { places: [[...places.values()]], completeBefore });
    if (places.size === 0 && this.#held.get(key) === held) this.#held.delete(key);
  }

  /** An asker stands in no line any more. */
  async leaveLine(keys: readonly string[], rules: readonly Rule[], asker: string): Promise<void> {
    // Who does not come to its turn is out of the line a second later.
    await this.#tell(this.link.send, keys, rules, { gone: [asker] }).catch(() => undefined);
  }

  /** The process ends, and has nothing at this key. */
  async leave(key: string, rule: Rule): Promise<void> {
    const told = { isLeaving: true, completeBefore: Number.MAX_SAFE_INTEGER };
    await this.#tell(this.link.send, [key], [rule], told).catch(() => undefined);
  }

  /** Says something about this process at some keys; by itself nothing of places, since its number is smaller than any. */
  async #tell(
    send: Send,
    keys: readonly string[],
    rules: readonly Rule[],
    told: Partial<RenewOperation>,
  ): Promise<void> {
    const places = keys.map(() => []);
    const whole = { process: this.process, rules, places, completeBefore: 0, gone: [], isLeaving: false, ...told };
    const { reply } = await send(keys, { ...whole, kind: "renew" });
    for (const woken of reply.wake) this.owner?.woken(woken);
  }

  /** Ends the renewals, unless there is a place to be named. */
  stopIfFree(): void {
    for (const { places } of this.#held.values()) if (places.size > 0) return;
    this.#disarm();
  }

  #arm(): void {
    if (this.#timer !== undefined) return;
    let leastUs = Number.POSITIVE_INFINITY;
    for (const { places } of this.#held.values())
      for (const { ttlUs, maxHoldUs } of places.values()) leastUs = Math.min(leastUs, ttlUs / 3, maxHoldUs);
    if (leastUs === Number.POSITIVE_INFINITY) return;
    this.#dueUs = this.clock.now() * 1000 + leastUs;
    this.#timer = this.clock.setTimer(this.#dueUs / 1000, () => {
      this.#timer = undefined;
      for (const { slots } of this.#held.values()) for (const slot of slots) this.owner?.lapse(slot);
      this.#arm();
      // While the store is away it hears of them when it is back.
      void this.renewAll().catch(() => undefined);
    });
    this.clock.unref?.(this.#timer);
  }
}
