import { queueFull } from "../arrivals.js";
import type { GuestList } from "../counsel.js";
import type { Demand } from "../demand.js";
import type { Engine } from "../engine.js";
import { earliestUs, reasonOf } from "../forecast.js";
import type { Gate } from "../gate.js";
import type { Lane, Waiter } from "../lane.js";

/** So many more than `maxQueue` are let in at a key while the store is asked. */
const GUESTS_MOST = 10_000;

/**
 * Those who come to a full queue of which nobody knows yet whether they have to wait: whoever has the last word has not said so.
 *
 * They are let in, and some refused once it has: `maxQueue` counts those who were told to wait.
 */
export class Guests implements GuestList {
  readonly #known = new WeakSet<Waiter>();
  #hasAny = false;

  constructor(
    readonly engine: Engine,
    /** How many of a lane were told to wait by the store. */
    readonly toldIn: (lane: Lane) => number,
  ) {}

  /** Whether a newcomer may ask, though as many wait at its key number `index` as are allowed to. */
  mayAsk(demand: Demand, index: number, nowUs: number): boolean {
    const { queue, ledger } = this.engine;
    if (nowUs < queue.pausedUntilUs) return false;
    const gate = queue.gateAt(demand.slots[index]);
    const { maxQueue } = ledger.profileOf(demand.slots[index]).rule;
    if ((gate?.waiting ?? 0) >= maxQueue + GUESTS_MOST) return false;
    const lane = queue.lanes.get(demand.name);
    if (lane !== undefined && this.#toldIn(lane) > 0) return gate !== undefined && this.#toldAt(gate) < maxQueue;
    return demand.slots.every((slot) => ledger.readyAt(slot, nowUs) <= nowUs);
  }

  /** Somebody was let in. */
  add(waiter: Waiter): void {
    this.#known.add(waiter);
    this.#hasAny = true;
  }

  /** A lane was told to wait: those let in beyond `maxQueue` are refused, the last to come first. Run the queue afterwards. */
  told(lane: Lane): void {
    if (!this.#hasAny) return;
    lane.gates.forEach((gate, index) => {
      const { maxQueue } = this.engine.ledger.profileOf(gate.slot).rule;
      const over = gate.waiting > maxQueue ? this.#toldAt(gate) - maxQueue : 0;
      if (over <= 0) return;
      const guests = lane.everybody().filter((waiter) => this.#known.has(waiter));
      guests.sort((a, b) => b.sequence - a.sequence);
      for (const waiter of guests.slice(0, over)) this.#refuse(waiter, lane, index, maxQueue);
    });
    for (const waiter of lane.everybody()) this.#known.delete(waiter);
  }

  #refuse(waiter: Waiter, lane: Lane, index: number, maxQueue: number): void {
    const { engine } = this;
    const nowUs = engine.nowUs();
    const error = queueFull(lane, index, maxQueue);
    const waitMs = (earliestUs(engine, lane, waiter.cost, nowUs) - nowUs) / 1000;
    engine.departures.refuseWaiter(waiter, error, error.code, waitMs, reasonOf(engine, lane, waiter.cost, nowUs));
  }

  #toldAt({ lanes }: Gate): number {
    let told = 0;
    for (const lane of lanes) told += this.#toldIn(lane);
    return told;
  }

  /** How many of a lane know that they wait: by what the store said, or for something in this process. */
  #toldIn(lane: Lane): number {
    return lane.gate === lane.aside ? this.toldIn(lane) : lane.size;
  }
}
