import { expect, it } from "vitest";
import { compileRule } from "../../../src/policy/compileRule.js";
import { memoryStore } from "../../../src/stores/memory.js";
import type { Store } from "../../../src/stores/store.js";

interface Watched {
  readonly store: Store;
  readonly tallies: Readonly<Record<string, object>>;
}

// Plain JavaScript, since processes of their own load it.
const { watchStore } = (await import(new URL("watchStore.mjs", import.meta.url).href)) as {
  watchStore(store: Store, onSettled: () => void): Watched;
};

/** Asks for one start of a host, by numbers that may be used again. */
function takerOf(store: Store) {
  const cost = { rate: 1, window: 1, quota: 1 };
  const keys = [{ rule: compileRule({ minDelay: "1s" }), cost, slowUs: 0 }];
  const once = { count: 1, horizonUs: 0, grainUs: 1, doesWait: false, isTold: false };
  return (number: number) =>
    store.transact(["host x"], { kind: "take", asker: "p.1", number, isAgain: false, keys, ...once });
}

it("counts a take that was refused and one that was granted, each once though it was sent twice", async () => {
  let nowUs = 1_000_000;
  const { store, tallies } = watchStore(
    memoryStore(() => nowUs),
    () => undefined,
  );
  const take = takerOf(store);
  expect([await take(1), await take(1)].map(({ grants }) => grants.length)).toEqual([1, 1]);
  expect((await take(2)).grants).toHaveLength(0);
  nowUs += 1_600_000;
  // What was refused is refused again; who asks anew is granted.
  expect((await take(2)).grants).toHaveLength(0);
  expect((await take(3)).grants).toHaveLength(1);
  expect(tallies.x).toMatchObject({ calls: 5, granted: 2, unheard: 0 });
});

it("does not count a start again that a late repetition of an earlier question is told of", async () => {
  let nowUs = 1_000_000;
  const { store, tallies } = watchStore(
    memoryStore(() => nowUs),
    () => undefined,
  );
  const take = takerOf(store);
  await take(1);
  expect((await take(2)).grants).toHaveLength(0);
  nowUs += 1_600_000;
  // The asker has gone on; the answer to its last question is what a store remembers.
  expect([await take(3), await take(2)].map(({ grants }) => grants.length)).toEqual([1, 1]);
  expect(tallies.x).toMatchObject({ calls: 4, granted: 2, unheard: 0 });
});
