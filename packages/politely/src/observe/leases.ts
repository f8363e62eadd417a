import { StoreError } from "../errors.js";
import type { Lease, LeaseRefusal } from "../lease.js";

/** How asking for a lease ended, or the lease itself. `refused`: somebody else has it. `failed`: the store did. `lost`: it was had, and is gone before its release. */
export type LeaseResult = "taken" | "refused" | "failed" | "lost";

/** Counts leases, and how many are held now. */
export class Leases {
  held = 0;
  /** In the order in which they are told. */
  readonly results: Record<LeaseResult, number> = { taken: 0, refused: 0, failed: 0, lost: 0 };

  constructor(readonly onResult: (result: LeaseResult) => void = () => undefined) {}

  /**
   * Counts how `asked` ends, and answers as it does; of a lease, with one that is the same but for being counted until it is released or lost.
   * A wait that was aborted, or arguments that make no sense, count as nothing.
   */
  async count(asked: Promise<Lease | LeaseRefusal>): Promise<Lease | LeaseRefusal> {
    try {
      const answer = await asked;
      this.#tell(answer.held ? "taken" : "refused");
      return answer.held ? this.#follow(answer) : answer;
    } catch (error) {
      if (error instanceof StoreError) this.#tell("failed");
      throw error;
    }
  }

  #tell(result: LeaseResult): void {
    this.results[result] += 1;
    this.onResult(result);
  }

  #follow(lease: Lease): Lease {
    const { name, token, signal } = lease;
    this.held += 1;
    let isHeld = true;
    const end = (): void => {
      signal.removeEventListener("abort", lose);
      if (isHeld) this.held -= 1;
      isHeld = false;
    };
    const lose = (): void => {
      if (isHeld) this.#tell("lost");
      end();
    };
    const release = (): Promise<void> => {
      if (signal.aborted) lose();
      return lease.release().finally(end);
    };
    signal.addEventListener("abort", lose);
    if (signal.aborted) lose();
    return { held: true, name, token, signal, release, [ASYNC_DISPOSE]: release };
  }
}

// Older engines have no Symbol.asyncDispose; the lease is then simply not disposable by `await using`.
const ASYNC_DISPOSE: typeof Symbol.asyncDispose = Symbol.asyncDispose ?? Symbol.for("Symbol.asyncDispose");
