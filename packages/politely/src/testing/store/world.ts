import type { Store } from "../../stores/store.js";
import { pause } from "../httpWorld.js";
import { Asker, type Wanted } from "./asker.js";
import { keyOf } from "./operations.js";

/** A store that is ready for use, and a second client of the same data. */
export interface OpenStore {
  readonly store: Store;
  /** A client that shares nothing with the first but the data: a connection of its own at least. */
  another(): Promise<Store>;
  /** Ends every client. */
  close(): Promise<void>;
}

/** What a case plays in: two clients of one store, and names that no other case has. */
export interface StoreWorld {
  readonly a: Asker;
  readonly b: Asker;
  /** A new name of a key. */
  readonly name: (label?: string) => string;
  /** A further process at the first or the second client. */
  readonly asker: (client?: "a" | "b") => Asker;
  /** A time in which a few operations fit, however slow the store is and however far its clocks differ: at least 40 ms. */
  readonly spanUs: number;
}

/** One thing that every store does. */
export interface StoreRule {
  readonly title: string;
  readonly play: (world: StoreWorld) => Promise<void>;
}

/** The least and the most that a few operations are taken to need. */
const SPAN_LEAST_MS = 40;
const SPAN_MOST_MS = 1_000;
/** Operations that have to fit. */
const SPAN_OPERATIONS = 6;

let worldCount = 0;
/** Another one in each run, so that what is left in the store is never met again. */
const run = Math.trunc(Math.random() * 2 ** 40).toString(36);

/** Opens a store with two clients, lets `play` run, and closes it. */
export async function inStoreWorld(
  open: () => Promise<OpenStore>,
  play: (world: StoreWorld) => Promise<void>,
): Promise<void> {
  const place = await open();
  try {
    const clients = { a: place.store, b: await place.another() };
    worldCount += 1;
    const prefix = `suite ${run} ${worldCount}`;
    let count = 0;
    const asker = (client: "a" | "b" = "a"): Asker => new Asker(clients[client], `${prefix} ${client} ${++count}`);
    const [a, b] = [asker("a"), asker("b")];
    const name = (label = "key"): string => `${prefix} ${++count} ${label}`;
    await play({ a, b, asker, name, spanUs: await spanOf([a, b], name("warm-up")) });
  } finally {
    await place.close();
  }
}

/** Measures how long operations take, once both clients have found their way. */
async function spanOf(askers: readonly Asker[], key: string): Promise<number> {
  const wanted: Wanted = { [key]: keyOf({}) };
  for (const asker of askers) await asker.take(wanted);
  let slowestMs = 0;
  for (const asker of [...askers, ...askers]) {
    const sentMs = performance.now();
    await asker.take(wanted);
    slowestMs = Math.max(slowestMs, performance.now() - sentMs);
  }
  const spanMs = Math.max(SPAN_LEAST_MS, Math.min(SPAN_MOST_MS, SPAN_OPERATIONS * slowestMs));
  return Math.ceil(1000 * spanMs) + 2 * (askers[0].store.clockErrorUs ?? 0);
}

/** Waits in real time until the clock of every client of a store has reached an instant. Fails after 2 s more than it should take. */
export async function reach({ store }: Asker, instantUs: number): Promise<void> {
  const untilUs = instantUs + (store.clockErrorUs ?? 0);
  const wanted: Wanted = { [`suite ${run} clock`]: keyOf({}) };
  let deadlineMs: number | undefined;
  for (;;) {
    const { nowUs } = await store.transact(Object.keys(wanted), { kind: "look", keys: Object.values(wanted) });
    if (nowUs >= untilUs) return;
    const leftMs = (untilUs - nowUs) / 1000;
    deadlineMs ??= performance.now() + leftMs + 2_000;
    if (performance.now() > deadlineMs) {
      throw new Error(`The clock of ${store.name} does not reach ${untilUs} µs: it is at ${nowUs}, 2 s late.`);
    }
    await pause(Math.max(1, Math.ceil(leftMs)));
  }
}

/** Fails unless two instants are the same, or differ by no more than the store says its clients' clocks do. */
export function sameInstant({ store }: Asker, actualUs: number, expectedUs: number, what: string): void {
  const errorUs = store.clockErrorUs ?? 0;
  holds(Math.abs(actualUs - expectedUs) <= errorUs, `${expectedUs} ${what}, give or take ${errorUs}; got ${actualUs}`);
}

/** Fails unless a condition holds. */
export function holds(condition: boolean, sentence: string): void {
  if (!condition) throw new Error(`Expected ${sentence}.`);
}
