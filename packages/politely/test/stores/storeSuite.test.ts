import { setTimeout as pause } from "node:timers/promises";
import { expect, it } from "vitest";
import { cellStore } from "../../src/stores/cellStore.js";
import type { Cells } from "../../src/stores/cells.js";
import { memoryCells } from "../../src/stores/memory.js";
import type { Operation } from "../../src/stores/operations.js";
import type { Store } from "../../src/stores/store.js";
import type { OpenStore } from "../../src/testing/index.js";
import { storeSuite } from "../../src/testing/storeSuite.js";
import { spoilIn } from "./cellsSuite.js";

// A suite that notices nothing passes for ever: each of these stores has one fault, and each case finds at least one of them.

const nowUs = (): number => Math.trunc(performance.now() * 1000) + 1_000_000_000;

/** A store that changes keys or operations on their way. */
function changed(
  changeKeys: (keys: readonly string[]) => readonly string[],
  changeOperation: (operation: Operation) => Operation = (operation) => operation,
): () => [Store, Store] {
  return () => {
    const cells = memoryCells(nowUs);
    const one = (): Store => {
      const store = cellStore(cells);
      return {
        ...store,
        transact: (keys, operation) => store.transact(changeKeys(keys), changeOperation(operation) as typeof operation),
      };
    };
    return [one(), one()];
  };
}

const sameKeys = (keys: readonly string[]): readonly string[] => keys;

/** A store whose operations are changed on their way. */
function operating(change: (operation: Operation) => Operation): () => [Store, Store] {
  return changed(sameKeys, change);
}

function over(makeCells: () => [Cells, Cells]): () => [Store, Store] {
  return () => {
    const [one, other] = makeCells();
    return [cellStore(one), cellStore(other)];
  };
}

/** Reads now and writes later: what others write meanwhile is lost. */
function careless(): [Cells, Cells] {
  const cells = memoryCells(nowUs);
  const change: Cells["change"] = async (keys, work) => {
    const [values, atUs] = await cells.change(keys, (read, us) => ({ writes: [], answer: [[...read], us] as const }));
    await pause(1);
    const { writes, answer } = work(values, atUs);
    await cells.change(keys, () => ({ writes, answer: undefined }));
    return answer;
  };
  return [
    { ...cells, change },
    { ...cells, change },
  ];
}

let copies = 0;
const nothing = { agesUs: [], counts: [], meant: 0, random: 0, pauseUs: undefined, reset: undefined } as const;
const once = { agesUs: [0], counts: [1] } as const;
const long = { maxHoldUs: 1e15, permitTtlUs: 1e15 };

type Spoil = NonNullable<OpenStore["spoil"]>;

const faults: Readonly<Record<string, () => [Store, Store, Spoil?]>> = {
  "takes what it cannot read for nothing": () => {
    const cells = memoryCells(nowUs);
    const change: Cells["change"] = (keys, work) =>
      cells.change(keys, (values, us) =>
        work(
          values.map((value) => (value?.includes("999") === true ? undefined : value)),
          us,
        ),
      );
    return [cellStore({ ...cells, change }), cellStore({ ...cells, change }), spoilIn(cells)];
  },
  "forgets everything": over(() => {
    const forgetful = (): Cells => ({
      ...memoryCells(nowUs),
      change: (keys, work) => memoryCells(nowUs).change(keys, work),
    });
    return [forgetful(), forgetful()];
  }),
  "keeps each client's data apart": over(() => [memoryCells(nowUs), memoryCells(nowUs)]),
  "loses what is written at the same time": over(careless),
  "has a client whose clock is a minute fast": over(() => {
    const cells = memoryCells(nowUs);
    const change: Cells["change"] = (keys, work) => cells.change(keys, (values, us) => work(values, us + 60_000_000));
    return [cells, { ...cells, change }];
  }),
  "carries out again what is sent again": operating((operation) =>
    "asker" in operation ? { ...operation, asker: `copy ${++copies}.1` } : operation,
  ),
  "folds case": changed((keys) => keys.map((key) => key.toLowerCase())),
  "cuts long names": changed((keys) => keys.map((key) => key.slice(0, 255))),
  "asks the first key only": () => {
    const [one, other] = operating((operation) =>
      "keys" in operation ? ({ ...operation, keys: operation.keys.slice(0, 1) } as Operation) : operation,
    )();
    const first = (store: Store): Store => ({
      ...store,
      transact: (keys, operation) => store.transact(keys.slice(0, 1), operation),
    });
    return [first(one), first(other)];
  },
  "has one key for all": changed((keys) => keys.map((_, index) => `key ${index}`)),
  "hears no answers": operating((operation) =>
    operation.kind === "settle"
      ? { ...operation, answer: { ...operation.answer, kind: "neutral", budget: undefined } }
      : operation,
  ),
  "takes nothing back": operating((operation) =>
    operation.kind === "settle" ? { ...operation, kind: "record", ...nothing, keys: [] } : operation,
  ),
  "keeps places for ever": operating((operation) =>
    operation.kind === "take" || operation.kind === "look"
      ? { ...operation, keys: operation.keys.map((key) => ({ ...key, rule: { ...key.rule, ...long } })) }
      : operation,
  ),
  "renews nothing": operating((operation) =>
    operation.kind === "renew" ? { ...operation, places: operation.places.map(() => []), gone: [] } : operation,
  ),
  "grants ahead without being asked to": operating((operation) =>
    operation.kind === "take" ? { ...operation, horizonUs: 1_000_000 } : operation,
  ),
  "knows no line": operating((operation) =>
    operation.kind === "take" ? { ...operation, doesWait: false } : operation,
  ),
  "grants one at a time": operating((operation) =>
    operation.kind === "take" ? { ...operation, count: 1 } : operation,
  ),
  "does nothing that it is told": operating((operation) =>
    operation.kind === "record" ? { ...operation, ...nothing } : operation,
  ),
  "counts a look as a start": () => {
    const [one, other] = operating((operation) => operation)();
    const looking = (store: Store): Store => ({
      ...store,
      async transact(keys, operation) {
        if (operation.kind === "look") {
          const by = { asker: `look.${++copies}`, number: 1, isAgain: false };
          await store.transact(keys, { kind: "record", ...by, keys: operation.keys, ...nothing, ...once });
        }
        return store.transact(keys, operation);
      },
    });
    return [looking(one), looking(other)];
  },
  "does not say who holds a lease": operating((operation) =>
    operation.kind === "lease" ? { ...operation, holder: "somebody", label: "" } : operation,
  ),
};

/** The cases that a store with a fault does not pass. */
async function failedBy(make: () => [Store, Store, Spoil?]): Promise<string[]> {
  const cases = storeSuite("a store", async () => {
    const [store, other, spoil] = make();
    return { store, another: async () => other, close: async () => undefined, ...(spoil && { spoil }) };
  });
  const results = await Promise.allSettled(cases.map(({ run }) => run()));
  return cases.filter((_, index) => results[index].status === "rejected").map(({ title }) => title);
}

it("is passed by no store with a fault, and each of its cases finds one", async () => {
  const titles = storeSuite("a store", () => Promise.reject(new Error("never opened"))).map(({ title }) => title);
  const unnoticed = new Set(titles);
  const passed: string[] = [];
  const left = Object.entries(faults);
  while (left.length > 0) {
    const some = left.splice(0, 5);
    const found = await Promise.all(some.map(([, make]) => failedBy(make)));
    found.forEach((failed, index) => {
      for (const title of failed) unnoticed.delete(title);
      if (failed.length === 0) passed.push(some[index][0]);
    });
  }
  expect(passed).toEqual([]);
  expect([...unnoticed]).toEqual([]);
});
