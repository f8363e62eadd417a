import { StoreError } from "../../src/errors.js";
import type { Dice } from "./dice.js";
import type { Machine } from "./machine.js";
import type { Way } from "./scenario.js";
import type { SimulatedStore } from "./simulatedStore.js";

const HELD_UP_MOST_US = 2_000_000;
/** Where a client has one answer for each question, one that was lost is an error in the end. */
const GIVEN_UP_MS = 5_000;

/** The way between one process and the store. */
export class Network {
  /** Undefined: it is open. */
  cut: "refused" | "silent" | undefined = undefined;
  /** From now on nothing goes wrong. */
  isHealed = false;
  /** The longest that an answered question took. */
  slowestUs = 0;
  #lastThereMs = 0;
  #lastBackMs = 0;

  constructor(
    readonly machine: Machine,
    readonly store: SimulatedStore,
    readonly way: Way,
    readonly dice: Dice,
  ) {}

  /** Has something done at the store. */
  call<Reply>(serve: () => Promise<Reply>, isOnce: boolean): Promise<Reply> {
    const { dice, machine, way } = this;
    const { world } = machine;
    const sentMs = world.now();
    return new Promise((resolve, reject) => {
      const fail = (delayMs: number, message: string): void =>
        machine.after(delayMs, () => reject(dice.chance(0.5) ? new StoreError(message) : new Error(message)));
      const lose = (): void => {
        if (isOnce) fail(GIVEN_UP_MS, "the connection was lost");
      };
      if (this.#whyNot === "refused") {
        fail(this.#delayUs() / 1000, "connection refused");
        return;
      }
      if (this.#happens(way.cut)) {
        fail(this.#delayUs() / 1000, "connection reset");
        if (dice.chance(0.5)) return;
      }
      const copies = !isOnce && this.#happens(way.twice) ? 2 : 1;
      for (let copy = 0; copy < copies; copy++) {
        if (this.#whyNot !== undefined || this.#happens(way.lost)) {
          lose();
          continue;
        }
        const thereMs = this.#inOrder(world.now() + this.#delayUs() / 1000, "#lastThereMs");
        const { generation } = this.store;
        world.setTimer(thereMs, () => {
          if (this.#whyNot !== undefined || generation !== this.store.generation) {
            lose();
            return;
          }
          serve().then(
            (reply) => {
              if (this.#whyNot !== undefined || this.#happens(way.lost)) {
                lose();
                return;
              }
              if (this.#happens(way.cut)) {
                fail(this.#delayUs() / 1000, "connection reset");
                return;
              }
              const backMs = this.#inOrder(world.now() + this.#delayUs() / 1000, "#lastBackMs");
              world.setTimer(backMs, () => {
                machine.run(() => {
                  this.slowestUs = Math.max(this.slowestUs, Math.round((world.now() - sentMs) * 1000));
                  resolve(reply);
                });
              });
            },
            (error: unknown) => machine.run(() => reject(error)),
          );
        });
      }
    });
  }

  get #whyNot(): "refused" | "silent" | undefined {
    return this.cut ?? this.store.down;
  }

  #happens(share: number): boolean {
    return !this.isHealed && share > 0 && this.dice.chance(share);
  }

  #delayUs(): number {
    const { leastUs, mostUs, heldUp } = this.way;
    const usualUs = this.dice.whole(leastUs, mostUs);
    return this.#happens(heldUp) ? usualUs + this.dice.whole(0, HELD_UP_MOST_US) : usualUs;
  }

  #inOrder(atMs: number, last: "#lastThereMs" | "#lastBackMs"): number {
    if (!this.way.isInOrder) return atMs;
    const inOrderMs = Math.max(atMs, last === "#lastThereMs" ? this.#lastThereMs : this.#lastBackMs);
    if (last === "#lastThereMs") this.#lastThereMs = inOrderMs;
    else this.#lastBackMs = inOrderMs;
    return inOrderMs;
  }
}
