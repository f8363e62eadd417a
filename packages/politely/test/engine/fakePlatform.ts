import type { ClockPlatform } from "../../src/engine/systemClock.js";

interface Entry {
  readonly atMs: number;
  readonly run: () => void;
}

/**
 * A platform by hand: timers land `latencyMs` after their whole milliseconds, and each turn of the loop takes `turnMs`.
 */
export class FakePlatform implements ClockPlatform {
  nowMs = 1_000;
  latencyMs = 0.2;
  turnMs = 0.01;
  readonly delays: number[] = [];
  turns = 0;
  readonly #timeouts = new Set<Entry>();
  readonly #immediates = new Set<Entry>();

  readonly now = (): number => this.nowMs;
  readonly wall = (): number => 42;
  readonly setTimeout = <T>(fn: (argument: T) => void, delayMs: number, argument: T): unknown => {
    this.delays.push(delayMs);
    return this.#add(this.#timeouts, this.nowMs + delayMs + this.latencyMs, () => fn(argument));
  };
  readonly clearTimeout = (handle: unknown): void => void this.#timeouts.delete(handle as Entry);
  readonly setImmediate = <T>(fn: (argument: T) => void, argument: T): unknown =>
    this.#add(this.#immediates, this.nowMs, () => fn(argument));
  readonly clearImmediate = (handle: unknown): void => void this.#immediates.delete(handle as Entry);

  get pendingCount(): number {
    return this.#timeouts.size + this.#immediates.size;
  }

  /** Runs one turn of the loop; without immediates it sleeps until the next timer. False when nothing is pending. */
  turn(): boolean {
    if (this.pendingCount === 0) return false;
    this.turns += 1;
    const nextMs = Math.min(...[...this.#timeouts].map((entry) => entry.atMs));
    this.nowMs = this.#immediates.size > 0 ? this.nowMs + this.turnMs : Math.max(this.nowMs, nextMs);
    const due = [...this.#timeouts].filter((entry) => entry.atMs <= this.nowMs).sort((a, b) => a.atMs - b.atMs);
    for (const [set, entries] of [[this.#timeouts, due] as const, [this.#immediates, [...this.#immediates]] as const]) {
      for (const entry of entries) if (set.delete(entry)) entry.run();
    }
    return true;
  }

  /** Runs until nothing is pending. */
  run(maxTurns = 100_000): void {
    for (let turns = 0; this.turn(); turns += 1) if (turns > maxTurns) throw new Error("The loop never ends.");
  }

  #add(set: Set<Entry>, atMs: number, run: () => void): Entry {
    const entry = { atMs, run };
    set.add(entry);
    return entry;
  }
}
