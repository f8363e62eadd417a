import { StoreError } from "../../errors.js";

/** Nobody has answered in time. */
export class SilenceError extends StoreError {
  constructor(store: string, patienceMs: number) {
    super(`${store} has not answered in ${patienceMs} ms. Look at the server and the network to it.`);
  }

  /** The same with what the client said about it before, if it said something. */
  after(cause: unknown): StoreError {
    if (cause === undefined) return this;
    return new StoreError(`${this.message} Its client said: ${wordsOf(cause)}`, { cause });
  }
}

/** Makes a `StoreError` of what a store should not have thrown. */
export function unexpected(name: string, cause: unknown): StoreError {
  return new StoreError(`${name} failed: ${wordsOf(cause)}. Look at the server and the network to it.`, { cause });
}

/** What an error says. One that only gathers others has no words of its own. */
function wordsOf(cause: unknown): string {
  if (cause instanceof AggregateError && cause.message === "") return cause.errors.map(wordsOf).join("; ");
  return cause instanceof Error ? cause.message || cause.name : String(cause);
}
