import type { Limits } from "../../policy/types.js";
import type { Store } from "../../stores/store.js";
import { pause } from "../httpWorld.js";
import { Asker, keyOf, type Wanted } from "./asker.js";

/** A store that is ready for use, and a second client of the same data. */
export interface OpenStore {
  readonly store: Store;
  /** A client that shares nothing with the first but the data: a connection of its own at least. */
  another(): Promise<Store>;
  /** Writes a value under a key that is none of the library's. Absent where nobody else can write. */
  spoil?(key: string): Promise<void>;
  /** Ends every client. */
  close(): Promise<void>;
}

/** What a case plays in: two clients of one store, and names that no other case has. */
export interface StoreWorld {
  readonly a: Asker;
  readonly b: Asker;
  /** A new name of a key. */
  readonly name: (label?: string) => string;
  /** A new key under these limits. */
  readonly key: (limits: Limits, cost?: number) => Wanted;
  /** One more process, at the first or the second client. */
  readonly asker: (index?: number) => Asker;
  /** A time in which a few operations fit, however far the store's clocks differ. */
  readonly spanMs: number;
  readonly spoil: OpenStore["spoil"];
}

/** Things that every store does: what, and how it is tried. */
export type StoreCases = Readonly<Record<string, (world: StoreWorld) => Promise<void>>>;

const SPAN_MS = 200;
const LOOKS_MOST = 5_000;

let worldCount = 0;
/** Another one in each run, so that what is left in the store is never met again. */
const run = Math.trunc(Math.random() * 2 ** 40).toString(36);

/** Opens a store with two clients, lets `play` run, and closes it. */
export async function inStoreWorld(open: () => Promise<OpenStore>, play: StoreCases[string]): Promise<void> {
  const place = await open();
  try {
    const clients = [place.store, await place.another()];
    const prefix = `suite ${run} ${++worldCount}`;
    let count = 0;
    const asker = (index = 0): Asker => new Asker(clients[index % 2], `${prefix} ${++count}`);
    const name = (label = "key"): string => `${prefix} ${++count} ${label}`;
    const key = (limits: Limits, cost?: number): Wanted => ({ [name()]: keyOf(limits, cost) });
    const spanMs = SPAN_MS + (2 * (place.store.clockErrorUs ?? 0)) / 1000;
    await play({ a: asker(0), b: asker(1), asker, name, key, spanMs, spoil: place.spoil?.bind(place) });
  } finally {
    await place.close();
  }
}

/** Waits in real time until the clock of every client of a store has reached an instant. */
export async function reach(asker: Asker, instantUs: number): Promise<void> {
  let leftUs = 0;
  for (let look = 0; look < LOOKS_MOST; look++) {
    const { nowUs } = await asker.look({ [`suite ${run} clock`]: keyOf({}) });
    leftUs = instantUs + (asker.store.clockErrorUs ?? 0) - nowUs;
    if (leftUs <= 0) return;
    await pause(Math.max(1, Math.ceil(leftUs / 1000)));
  }
  throw new Error(`The clock of ${asker.store.name} stays ${leftUs} µs before ${instantUs}.`);
}

/** Fails unless a condition holds. */
export function holds(condition: boolean, sentence: string): void {
  if (!condition) throw new Error(`Expected ${sentence}.`);
}

/** Whether each number is above the one before. */
export function isGrowing(numbers: readonly number[]): boolean {
  return numbers.slice(1).every((number, index) => number > numbers[index]);
}
