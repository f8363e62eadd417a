import type { Operation, ReplyTo } from "./operations.js";

/**
 * Where shared state lives. One method decides: several keys together, all or nothing.
 *
 * The operation is data. A store that can lock or compare and swap carries it out with `cellStore`; one that runs scripts may
 * carry it out there, and must answer the same: `storeSuite` of `politely/testing` checks both.
 */
export interface Store {
  /** For messages: `"Redis"`. */
  readonly name: string;
  /** `"epoch"`: its instants are microseconds since 1970. `"machine"`: since an instant that only its clients share. */
  readonly timeline: "epoch" | "machine";
  /** How far the times of two of its clients may differ, in microseconds. Absent: not at all, since there is one clock. */
  readonly clockErrorUs?: number;
  /** A key can be changed by one client in each of its round trips, so that a turn had better be worth several starts. Absent: by all of them at once. */
  readonly isContended?: boolean;
  /**
   * What the client last reported beside its answers, a refused connection say, for the message when it does not answer; undefined when there is
   * nothing to say. Absent where a question that fails says why itself.
   */
  lastError?(): unknown;
  /**
   * Calls `onWake` with each asker of that process whose turn has come since another process gave something back, until the returned function is
   * called. Absent where a store cannot tell: then askers look again by themselves.
   */
  listen?(process: string, onWake: (asker: string) => void): () => void;
  /**
   * Carries out one operation on `keys`, in one atomic step.
   *
   * Rejects with `StoreError` when it cannot: then it may or may not have happened, and sending the same operation again is safe.
   */
  transact<Op extends Operation>(keys: readonly string[], operation: Op): Promise<ReplyTo<Op>>;
}
