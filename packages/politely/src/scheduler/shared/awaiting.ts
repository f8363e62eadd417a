import type { Desk } from "./desk.js";

/** Lanes that wait for something to change at a key, by that key; and those who may, once they are answered. */
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

  /** Notes at which key a lane waits; at no other from now on. */
  add(desk: Desk, storeKey: string): void {
    this.remove(desk);
    desk.awaits = storeKey;
    const desks = this.#byKey.get(storeKey) ?? new Set();
    desks.add(desk);
    this.#byKey.set(storeKey, desks);
  }

  remove(desk: Desk): void {
    const desks = this.#byKey.get(desk.awaits);
    desks?.delete(desk);
    if (desks?.size === 0) this.#byKey.delete(desk.awaits);
    desk.awaits = "";
  }

  /** Those who wait at a key, who wait no longer. Who asks just now is told when it hears the answer. */
  take(storeKey: string): readonly Desk[] {
    for (const desk of this.#asking) desk.isFreed ||= desk.plan.storeKeys.includes(storeKey);
    const desks = Array.from(this.#byKey.get(storeKey) ?? []);
    for (const desk of desks) this.remove(desk);
    return desks;
  }
}
