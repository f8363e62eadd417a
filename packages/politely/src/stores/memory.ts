import { cellStore } from "./cellStore.js";
import type { Cells } from "./cells.js";
import type { Store } from "./store.js";
import { processOf } from "./storedKey.js";

/** Keys that are looked at for expiry with each change. */
const SWEEP_COUNT = 4;

/**
 * Keeps shared state in this process, on a clock of the caller's: for tests in virtual time, and for as long as a real store is away.
 *
 * Several limiters that are given the same store share their limits.
 */
export function memoryStore(nowUs: () => number, wallMs?: () => number): Store {
  return cellStore(memoryCells(nowUs, wallMs));
}

/** The cells of a memory store. */
export function memoryCells(nowUs: () => number, wallMs: () => number = Date.now): Cells {
  const listeners = new Map<string, (asker: string) => void>();
  const cells = new Map<string, { readonly value: string; readonly untilUs: number }>();
  return {
    name: "memory",
    timeline: "machine",
    wallMs,
    bell: {
      ring: (askers) => {
        for (const asker of askers) queueMicrotask(() => listeners.get(processOf(asker))?.(asker));
      },
      listen: (process, onWake) => {
        listeners.set(process, onWake);
        return () => listeners.delete(process);
      },
    },
    async change(keys, change) {
      const atUs = nowUs();
      const values = keys.map((key) => {
        const cell = cells.get(key);
        return cell === undefined || cell.untilUs <= atUs ? undefined : cell.value;
      });
      const { writes, answer } = change(values, atUs);
      for (const { index, value, ttlUs } of writes) {
        cells.set(keys[index], { value, untilUs: atUs + ttlUs });
      }
      sweep(cells, atUs);
      return answer;
    },
  };
}

/** Looks at a few cells from the front and removes those that have expired; the others go to the back. */
function sweep<Cell extends { readonly untilUs: number }>(cells: Map<string, Cell>, atUs: number): void {
  let looked = 0;
  for (const [key, cell] of cells) {
    if (looked++ === SWEEP_COUNT) return;
    cells.delete(key);
    if (cell.untilUs > atUs) cells.set(key, cell);
  }
}
