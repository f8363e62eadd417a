import { type HostLimits, type PolicyInput, politely } from "politely";
import { ProblemError } from "./api/problem.js";
import type { ServiceLimiter } from "./serviceLimiter.js";

/** How many hosts may have limits that were edited. */
const EDITED_MOST = 10_000;

/**
 * The policy of the service: that of the file, and the limits that were edited since.
 *
 * Edits are applied one after the other, and live as long as the service. One that is wrong changes nothing.
 */
export class PolicyBook {
  readonly #edits = new Map<string, HostLimits>();
  #current: PolicyInput;
  #last: Promise<void> = Promise.resolve();
  /** Made with the first edit. */
  #keys: ReadonlyMap<string, string> | undefined;

  constructor(
    readonly limiter: ServiceLimiter,
    readonly original: PolicyInput,
  ) {
    this.#current = original;
  }

  /** What applies now. */
  current(): PolicyInput {
    return this.#current;
  }

  /** The hosts whose limits were edited, in the order of the first edit. */
  edited(): readonly string[] {
    return [...this.#edits.keys()];
  }

  /** Replaces the limits of one host, whole. Rejects with `PolicyError` when they are wrong. */
  edit(key: string, limits: HostLimits): Promise<void> {
    return this.#inTurn(async () => {
      if (!this.#edits.has(key) && this.#edits.size >= EDITED_MOST) {
        throw new ProblemError(409, `The limits of ${EDITED_MOST} hosts are edited already. Put some back first.`);
      }
      await this.#apply(new Map(this.#edits).set(key, limits));
    });
  }

  /** Puts back what the file says of one host. Resolves to whether it had been edited. */
  putBack(key: string): Promise<boolean> {
    return this.#inTurn(async () => {
      if (!this.#edits.has(key)) return false;
      const edits = new Map(this.#edits);
      edits.delete(key);
      await this.#apply(edits);
      return true;
    });
  }

  async #apply(edits: ReadonlyMap<string, HostLimits>): Promise<void> {
    this.#keys ??= keysOf(this.original);
    // A host has one entry, however the file writes its name.
    const kept = Object.entries(this.original.hosts ?? {}).filter(
      ([name]) => !edits.has(this.#keys?.get(name) ?? name),
    );
    const policy = { ...this.original, hosts: Object.fromEntries([...kept, ...edits]) };
    await this.limiter.configure(policy);
    this.#current = policy;
    this.#edits.clear();
    for (const [key, limits] of edits) this.#edits.set(key, limits);
  }

  #inTurn<Result>(work: () => Promise<Result>): Promise<Result> {
    const done = this.#last.then(work);
    this.#last = done.then(
      () => undefined,
      () => undefined,
    );
    return done;
  }
}

/** The hosts that a policy names, each with the key that the limiter makes of the name. Patterns have none. */
function keysOf({ hosts = {} }: PolicyInput): ReadonlyMap<string, string> {
  const limiter = politely({});
  const names = Object.keys(hosts).filter((name) => !name.includes("*"));
  return new Map(names.map((name) => [name, limiter.explain(name).key]));
}
