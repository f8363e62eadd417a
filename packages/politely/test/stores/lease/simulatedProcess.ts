import { StoreError } from "../../../src/errors.js";
import type { LeaseOperation, Operation } from "../../../src/stores/operations.js";
import type { Store } from "../../../src/stores/store.js";
import type { VirtualClock } from "../../../src/testing/index.js";
import type { Clock } from "../../../src/types.js";
import type { Passage } from "./rig.js";

/** How a simulated process differs from the ideal. */
export interface ProcessTraits {
  /** What its monotonic clock shows at the start. */
  readonly offsetMs: number;
  /** How fast its clock runs: 1.0005 gains 0.05 %. */
  readonly rate: number;
  readonly wallOffMs: number;
  /** What becomes of its operations, in turn and again from the front. */
  readonly passages: readonly Passage[];
}

/**
 * A process of its own inside the test: with a clock that is a little wrong, a bad link to the store, and the possibility to stand
 * still or to die. While it stands still, nothing that waits in it goes on: neither timers nor replies.
 */
export class SimulatedProcess {
  readonly clock: Clock;
  readonly store: Store;
  #isStill = false;
  #isDead = false;
  #due: (() => void)[] = [];

  constructor(
    traits: ProcessTraits,
    shared: Store,
    readonly world: VirtualClock,
  ) {
    const { offsetMs, rate, wallOffMs, passages } = traits;
    this.clock = {
      now: () => offsetMs + world.now() * rate,
      wall: () => world.wall() + wallOffMs,
      setTimer: (atMs, fn) => world.setTimer((atMs - offsetMs) / rate, () => this.#run(fn)),
      clearTimer: (timer) => world.clearTimer(timer),
    };
    let sent = 0;
    this.store = {
      name: shared.name,
      timeline: shared.timeline,
      transact: <Op extends Operation>(keys: readonly string[], operation: Op) =>
        new Promise<never>((resolve, reject) => {
          const { thereMs, backMs, fate } = passages[sent++ % passages.length];
          const fail = (): void => reject(new StoreError(`A ${(operation as unknown as LeaseOperation).act} failed.`));
          const back = (act: () => void): unknown => world.setTimer(world.now() + backMs, () => this.#run(act));
          world.setTimer(world.now() + thereMs, () => {
            if (fate === "lost") back(fail);
            // What is on its way arrives, whatever became of the sender.
            else
              void shared.transact(keys, operation).then((reply) => {
                if (fate !== "silent") back(fate === "unheard" ? fail : () => resolve(reply as never));
              });
          });
        }),
    };
  }

  /** Able to do something at this moment. */
  get isRunning(): boolean {
    return !this.#isStill && !this.#isDead;
  }

  standStill(): void {
    this.#isStill = true;
  }

  /** Goes on. `look` runs first, before anything that came due meanwhile. */
  goOn(look: () => void): void {
    if (!this.#isStill || this.#isDead) return;
    this.#isStill = false;
    look();
    const due = this.#due;
    this.#due = [];
    for (const act of due) act();
  }

  die(): void {
    this.#isDead = true;
    this.#due = [];
  }

  /** Waits by the world's time, for as long as the process runs. */
  pause(ms: number): Promise<void> {
    return new Promise((resolve) => void this.world.setTimer(this.world.now() + ms, () => this.#run(resolve)));
  }

  #run(act: () => void): void {
    if (this.#isDead) return;
    if (this.#isStill) this.#due.push(act);
    else act();
  }
}
