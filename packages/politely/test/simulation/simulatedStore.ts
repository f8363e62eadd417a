import { cellStore } from "../../src/stores/cellStore.js";
import type { Cells } from "../../src/stores/cells.js";
import { BEHIND_MOST_US } from "../../src/stores/decide.js";
import { memoryCells } from "../../src/stores/memory.js";
import type { Store } from "../../src/stores/store.js";
import type { VirtualClock } from "../../src/testing/virtualClock.js";

/** What was the case at the store when it made a reply. */
export interface Made {
  /** In virtual time. */
  readonly atMs: number;
  /** How often the store has lost everything. */
  readonly epoch: number;
  /** For each key, by how much its past was moved so far since the clock was set back. */
  readonly movedUs: readonly number[];
  /** How many changes were made before. */
  readonly order: number;
}

/** A store in virtual time whose clock can be set, and that can go down and lose what it knew. */
export class SimulatedStore {
  /** Undefined: it is there. */
  down: "refused" | "silent" | undefined = undefined;
  epoch = 0;
  /** Changes with each restart: what was on its way before is lost. */
  generation = 0;
  jumpUs = 0;
  /** Carries operations out, as a server does. */
  readonly server: Store;
  readonly cells: Cells;
  /** How each reply was made. */
  readonly made = new WeakMap<object, Made>();
  changes = 0;
  #memory: Cells;
  readonly #moved = new Map<string, number>();
  readonly #changedUs = new Map<string, number>();

  constructor(readonly world: VirtualClock) {
    this.#memory = this.#empty();
    this.cells = {
      name: "simulated",
      timeline: "epoch",
      change: (keys, change) =>
        this.#memory.change(keys, (values, nowUs) => {
          const made = this.#note(keys, nowUs);
          const outcome = change(values, nowUs);
          for (const reply of outcome.answer as readonly object[]) this.made.set(reply, made);
          return outcome;
        }),
    };
    this.server = cellStore(this.cells);
  }

  /** The store's time. */
  nowUs(): number {
    return Math.floor(this.world.wall() * 1000 + 0.01) + this.jumpUs;
  }

  goDown(how: "refused" | "silent", isEmptied: boolean): void {
    this.down = how;
    this.generation += 1;
    if (!isEmptied) return;
    this.epoch += 1;
    this.#memory = this.#empty();
    this.#moved.clear();
    this.#changedUs.clear();
  }

  #empty(): Cells {
    return memoryCells(() => this.nowUs());
  }

  /** Keeps a book of its own on clocks that are set back. */
  #note(keys: readonly string[], clockUs: number): Made {
    let nowUs = clockUs;
    const movedUs = keys.map((key) => {
      const changedUs = this.#changedUs.get(key) ?? clockUs;
      const before = this.#moved.get(key) ?? 0;
      if (changedUs <= clockUs + BEHIND_MOST_US) {
        nowUs = Math.max(nowUs, changedUs);
        return before;
      }
      const moved = before + changedUs - clockUs;
      this.#moved.set(key, moved);
      return moved;
    });
    for (const key of keys) this.#changedUs.set(key, nowUs);
    return { atMs: this.world.now(), epoch: this.epoch, movedUs, order: ++this.changes };
  }
}
