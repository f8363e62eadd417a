import type { Desk } from "./desk.js";

/** Lanes that were told to wait, by each of their keys; and those who may be, once they are answered. */
export class Awaiting {
  readonly #byKey = new Map<string, Set<Desk>>();
  readonly #asking = new Set<Desk>();

  /** The question of a lane is on its way, */
  asks(desk: Desk): void {
    desk.isFreed = false;
    this.#asking.add(desk);
  }

  /** and has come back. */
  answered(desk: Desk): void {
    desk.isAsking = false;
    this.#asking.delete(desk);
  }

  /** Notes that a lane waits for one of its keys, for no other from now on, and whether an answer or a release may end that. */
  add(desk: Desk, storeKey: string, isEvent: boolean): void {
    this.remove(desk);
    desk.awaits = storeKey;
    desk.awaitsEvent = isEvent;
    desk.awaitsAt = desk.plan.storeKeys;
    for (const key of desk.awaitsAt) {
      const desks = this.#byKey.get(key) ?? new Set();
      desks.add(desk);
      this.#byKey.set(key, desks);
    }
  }

  remove(desk: Desk): void {
    for (const key of desk.awaitsAt) {
      const desks = this.#byKey.get(key);
      desks?.delete(desk);
      if (desks?.size === 0) this.#byKey.delete(key);
    }
    desk.awaitsAt = [];
    desk.awaits = "";
  }

  /** Whether a lane waits for a key. */
  has(storeKey: string): boolean {
    for (const { awaits } of this.#byKey.get(storeKey) ?? []) if (awaits === storeKey) return true;
    return false;
  }

  /** Something was given back at a key: who asks just now is told when it hears the answer. */
  freed(storeKey: string): void {
    for (const desk of this.#asking) desk.isFreed ||= desk.plan.storeKeys.includes(storeKey);
  }

  /** Who waits for longest among those for whom something given back at a key may make room. */
  firstFor(storeKey: string, but: ReadonlySet<Desk>): Desk | undefined {
    return this.#first(storeKey, but, (desk) => desk.awaitsEvent && desk.awaits === storeKey);
  }

  /** Who waits for longest among those at a key who let others go first, and could start at this instant of the store instead of one of them. */
  firstBehind(storeKey: string, turnUs: number, but: ReadonlySet<Desk>): Desk | undefined {
    return this.#first(storeKey, but, (desk) => desk.isBehind && (desk.stop?.readyUs ?? turnUs) <= turnUs);
  }

  #first(storeKey: string, but: ReadonlySet<Desk>, isMeant: (desk: Desk) => boolean): Desk | undefined {
    let first: Desk | undefined;
    for (const desk of this.#byKey.get(storeKey) ?? []) {
      if (desk.isAsking || desk.chance !== undefined || (first !== undefined && isBefore(first, desk))) continue;
      if (!but.has(desk) && isMeant(desk)) first = desk;
    }
    return first;
  }
}

/** In the order of the store's lines. */
function isBefore(one: Desk, other: Desk): boolean {
  return one.joinedUs === other.joinedUs ? one.ticket < other.ticket : one.joinedUs < other.joinedUs;
}
