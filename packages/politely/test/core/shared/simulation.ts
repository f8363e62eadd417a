import type { TakeOperation, TakeReply } from "../../../src/shared/operation.js";
import { ASK_AGAIN_US } from "../../../src/shared/take.js";
import { settleOf, startsOf, type TakenStart, takeOf } from "../../../src/testing/store/operations.js";
import { Place, type Wanted } from "./place.js";

/** How one kind of process behaves. */
export interface Habit {
  readonly wanted: Wanted;
  /** Requests waiting in its own queue at any time; Infinity by default. With 1 it asks for the next when the one before is over. */
  readonly backlog?: number;
  /** How long a request takes, at least and at most. Default 0: nobody has to know. */
  readonly workUs?: number | readonly [number, number];
  readonly count?: number;
}

/** A process of the simulation, and how it fared. */
export interface Worker {
  readonly name: string;
  readonly habit: Habit;
  readonly startsUs: number[];
  /** The longest time between two of its starts, or from its birth to the first. */
  longestWaitUs: number;
  isAlive: boolean;
  bornUs: number;
  turnUs: number;
  joinedUs: number;
  sequence: number;
}

/** Processes around one store in virtual time, each with a network of 0.1 to 0.6 ms either way, as a process really behaves. */
export class Simulation {
  readonly place = new Place();
  readonly workers: Worker[] = [];
  /** Operations that arrived at the store. */
  takes = 0;
  refusals = 0;
  settles = 0;
  readonly #due: { readonly atUs: number; readonly order: number; readonly run: () => void }[] = [];
  readonly #random: () => number;
  #order = 0;
  readonly beginUs: number;

  constructor(seed: number) {
    this.#random = generator(seed);
    this.beginUs = this.place.nowUs;
  }

  add(count: number, habit: Habit): Worker[] {
    const born = Array.from({ length: count }, (): Worker => {
      const name = `process-${this.workers.length}`;
      const worker: Worker = {
        name,
        habit,
        startsUs: [],
        longestWaitUs: 0,
        isAlive: true,
        bornUs: this.place.nowUs,
        turnUs: 0,
        joinedUs: 0,
        sequence: 0,
      };
      this.workers.push(worker);
      this.#at(this.place.nowUs + this.#between(0, 5_000), () => this.#ask(worker));
      return worker;
    });
    return born;
  }

  /** The process says nothing more. */
  kill(worker: Worker): void {
    worker.isAlive = false;
  }

  run(us: number): void {
    const endUs = this.place.nowUs + us;
    for (;;) {
      const first = this.#due[0];
      if (first === undefined || first.atUs > endUs) break;
      this.#pop();
      this.place.nowUs = Math.max(this.place.nowUs, first.atUs);
      first.run();
    }
    this.place.nowUs = endUs;
    for (const worker of this.workers) if (worker.isAlive) this.#noteWait(worker, endUs);
  }

  /** All starts, in order. */
  startsUs(): number[] {
    return this.workers.flatMap((worker) => worker.startsUs).sort((a, b) => a - b);
  }

  #ask(worker: Worker): void {
    if (!worker.isAlive) return;
    const { backlog = Number.POSITIVE_INFINITY, count = 1, wanted } = worker.habit;
    worker.sequence += 1;
    const operation = takeOf({ asker: worker.name, sequence: worker.sequence }, Object.values(wanted), {
      count,
      horizonUs: HORIZON_US,
      ticket: worker.name,
      turnUs: worker.turnUs,
      joinedUs: worker.joinedUs,
      hasMore: backlog > count,
    });
    this.#travel(() => {
      this.takes += 1;
      const reply = this.place.send(Object.keys(wanted), operation);
      if (reply.starts.length === 0) this.refusals += 1;
      this.#travel(() => this.#hear(worker, operation, reply));
    });
  }

  #hear(worker: Worker, operation: TakeOperation, reply: TakeReply): void {
    if (!worker.isAlive) return;
    const { workUs = 0 } = worker.habit;
    for (const taken of startsOf(operation, reply)) {
      const { startedUs } = taken.start;
      this.#noteWait(worker, startedUs);
      worker.startsUs.push(startedUs);
      const readyUs = this.place.nowUs + Math.max(0, startedUs - reply.nowUs);
      const ownUs = typeof workUs === "number" ? workUs : this.#between(...workUs);
      if (ownUs > 0) this.#at(readyUs + ownUs, () => this.#settle(worker, taken));
      else if (!operation.hasMore) this.#at(readyUs, () => this.#ask(worker));
    }
    const { stop } = reply;
    if (stop === undefined) {
      worker.turnUs = 0;
      worker.joinedUs = 0;
      return;
    }
    worker.joinedUs = reply.starts.length > 0 || worker.joinedUs === 0 ? reply.nowUs : worker.joinedUs;
    worker.turnUs = stop.turnUs;
    const waitUs = Math.max(200, Math.min(stop.turnUs - reply.nowUs, ASK_AGAIN_US) - LEAD_US);
    this.#at(this.place.nowUs + waitUs, () => this.#ask(worker));
  }

  #settle(worker: Worker, taken: TakenStart): void {
    if (!worker.isAlive) return;
    worker.sequence += 1;
    const operation = settleOf({ asker: `${worker.name}:settle`, sequence: worker.sequence }, taken);
    this.#travel(() => {
      this.settles += 1;
      this.place.send(Object.keys(worker.habit.wanted), operation);
    });
    if (!taken.operation.hasMore) this.#ask(worker);
  }

  #noteWait(worker: Worker, untilUs: number): void {
    const sinceUs = worker.startsUs.at(-1) ?? worker.bornUs;
    worker.longestWaitUs = Math.max(worker.longestWaitUs, untilUs - sinceUs);
  }

  #travel(arrive: () => void): void {
    this.#at(this.place.nowUs + this.#between(100, 600), arrive);
  }

  #between(least: number, most: number): number {
    return least + Math.floor(this.#random() * (most - least));
  }

  /** A heap of what is due; of two at one instant, the first made. */
  #at(atUs: number, run: () => void): void {
    this.#order += 1;
    const due = this.#due;
    due.push({ atUs, order: this.#order, run });
    let child = due.length - 1;
    while (child > 0) {
      const parent = (child - 1) >> 1;
      if (!isBefore(due[child], due[parent])) break;
      [due[child], due[parent]] = [due[parent], due[child]];
      child = parent;
    }
  }

  #pop(): void {
    const due = this.#due;
    const last = due.pop();
    if (last === undefined || due.length === 0) return;
    due[0] = last;
    for (let parent = 0; ; ) {
      let least = parent;
      for (const child of [2 * parent + 1, 2 * parent + 2]) {
        if (child < due.length && isBefore(due[child], due[least])) least = child;
      }
      if (least === parent) return;
      [due[parent], due[least]] = [due[least], due[parent]];
      parent = least;
    }
  }
}

/** As a process in a data centre has it: three round trips and a little. */
const HORIZON_US = 3_000;
const LEAD_US = 1_200;

function isBefore(
  one: { readonly atUs: number; readonly order: number },
  other: { readonly atUs: number; readonly order: number },
): boolean {
  return one.atUs < other.atUs || (one.atUs === other.atUs && one.order < other.order);
}

/** Numbers from 0 up to 1, the same for the same seed. */
function generator(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
