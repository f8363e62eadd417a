import type { VirtualClock } from "../../src/testing/virtualClock.js";
import type { Clock } from "../../src/types.js";

/** A process as the system sees it: it has a clock of its own, and can be stopped and killed. */
export class Machine {
  isDead = false;
  #isStopped = false;
  /** What has fallen due while it stood still. */
  #late: (() => void)[] = [];
  /** Timers that are set and neither called nor cleared. */
  readonly timers = new Set<object>();
  readonly clock: Clock;

  constructor(
    readonly world: VirtualClock,
    skewMs: number,
  ) {
    this.clock = {
      now: () => world.now() + skewMs,
      wall: () => world.wall(),
      setTimer: (atMs, fn) => {
        const timer = {};
        this.timers.add(timer);
        world.setTimer(atMs - skewMs, () =>
          this.run(() => {
            if (this.timers.delete(timer)) fn();
          }),
        );
        return timer;
      },
      clearTimer: (timer) => {
        this.timers.delete(timer as object);
      },
    };
  }

  /** Runs something in this process: at once, when it goes on, or never. */
  run(fn: () => void): void {
    if (this.isDead) return;
    if (this.#isStopped) this.#late.push(fn);
    else fn();
  }

  /** Runs something in this process later. */
  after(ms: number, fn: () => void): void {
    this.world.setTimer(this.world.now() + ms, () => this.run(fn));
  }

  stop(): void {
    this.#isStopped = true;
  }

  goOn(): void {
    if (!this.#isStopped) return;
    this.#isStopped = false;
    const late = this.#late;
    this.#late = [];
    // Each in a turn of its own, in the order in which they fell due.
    for (const fn of late) this.after(0, fn);
  }

  kill(): void {
    this.isDead = true;
    this.#late = [];
  }
}
