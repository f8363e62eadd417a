import { expect, it } from "vitest";
import { memoryStore } from "../../../src/stores/memory.js";
import type { Store } from "../../../src/stores/store.js";
import { keyOf, takeOf } from "../../../src/testing/store/operations.js";

interface Watched {
  readonly store: Store;
  readonly tallies: Readonly<Record<string, object>>;
}

// Plain JavaScript, since processes of their own load it.
const { watchStore } = (await import(new URL("watchStore.mjs", import.meta.url).href)) as {
  watchStore(store: Store, onSettled: () => void): Watched;
};

it("counts a take that was refused, sent again and then granted, and one that was sent twice once", async () => {
  let nowUs = 1_000_000;
  const { store, tallies } = watchStore(
    memoryStore(() => nowUs),
    () => undefined,
  );
  const key = keyOf({ gapUs: 1_000_000 });
  const take = (sequence: number) => store.transact(["host x"], takeOf({ asker: "p:1", sequence }, [key]));
  expect([await take(1), await take(1)].map(({ starts }) => starts.length)).toEqual([1, 1]);
  expect((await take(2)).starts).toHaveLength(0);
  nowUs += 1_600_000;
  expect((await take(2)).starts).toHaveLength(1);
  expect(tallies.x).toMatchObject({ calls: 4, granted: 2, unheard: 0 });
});

it("does not count a start again that a late repetition of an earlier question is told of", async () => {
  let nowUs = 1_000_000;
  const { store, tallies } = watchStore(
    memoryStore(() => nowUs),
    () => undefined,
  );
  const key = keyOf({ gapUs: 1_000_000 });
  const take = (sequence: number) => store.transact(["host x"], takeOf({ asker: "p:1", sequence }, [key]));
  await take(1);
  expect((await take(2)).starts).toHaveLength(0);
  nowUs += 1_600_000;
  // The asker has gone on; the answer to its last question is what a store remembers.
  expect([await take(3), await take(2)].map(({ starts }) => starts.length)).toEqual([1, 1]);
  expect(tallies.x).toMatchObject({ calls: 4, granted: 2, unheard: 0 });
});
