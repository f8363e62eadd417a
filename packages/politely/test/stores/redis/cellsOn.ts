import type { Cells } from "../../../src/stores/cells.js";

/** Cells that are never removed: whether they have expired is judged by the clock of the moment, as the script does. */
export function cellsOn(clock: () => number): Cells {
  const cells = new Map<string, { readonly value: string; readonly untilUs: number }>();
  return {
    name: "cells on a clock",
    timeline: "epoch",
    async change(keys, change) {
      const nowUs = clock();
      const found = keys.map((key) => cells.get(key));
      const values = found.map((cell) => (cell === undefined || cell.untilUs <= nowUs ? undefined : cell.value));
      const { writes, answer } = change(values, nowUs);
      for (const { index, value, ttlUs } of writes) {
        // What is kept says until when: not later where the clock has stepped back a little.
        const [mark, , stored] = JSON.parse(value) as readonly [string, number, { readonly counts: readonly number[] }];
        cells.set(keys[index], { value, untilUs: mark === "politely" ? stored.counts[5] : nowUs + ttlUs });
      }
      return answer;
    },
  };
}
