import { StoreError } from "../../errors.js";
import type { Store } from "../../stores/store.js";

/** Nobody has answered in time. */
export class SilenceError extends StoreError {
  constructor(store: Store, patienceMs: number) {
    super(`${store.name} has not answered in ${patienceMs} ms. ${adviceFor(store)}`);
  }

  /** The same with what the client said about it before, if it said something. */
  after(cause: unknown): StoreError {
    if (cause === undefined) return this;
    return new StoreError(`${this.message} Its client said: ${wordsOf(cause)}`, { cause });
  }
}

/** Makes a `StoreError` of what a store should not have thrown. */
export function unexpected(store: Store, cause: unknown): StoreError {
  return new StoreError(`${store.name} failed: ${wordsOf(cause)}. ${adviceFor(store)}`, { cause });
}

/** Where to look: a store with the clock of its machine has no server. */
function adviceFor({ timeline }: Store): string {
  return timeline === "machine"
    ? "Look at what else on this machine uses it."
    : "Look at the server and the network to it.";
}

/** What an error says. One that only gathers others has no words of its own. */
function wordsOf(cause: unknown): string {
  if (cause instanceof AggregateError && cause.message === "") return cause.errors.map(wordsOf).join("; ");
  return cause instanceof Error ? cause.message || cause.name : String(cause);
}
