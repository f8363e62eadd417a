import { type PolicyInput, politely } from "politely";
import { type OpenedStore, openStore, type StoreKind, storeFailure } from "../stores/openStore.js";
import type { ServiceLimiter } from "./serviceLimiter.js";

/** Where the service keeps its state, and the limiter over it. */
export interface ServiceState {
  readonly limiter: ServiceLimiter;
  /** `"memory"`, or the kind of store. */
  readonly store: "memory" | OpenedStore["kind"];
  /** Whether the store answers, within 2 s; always true in memory. */
  isThere(): Promise<boolean>;
  /** Closes the limiter, then the store. */
  close(): Promise<void>;
}

/** How state is opened. */
export interface StateOptions {
  readonly policy: PolicyInput;
  /** Paths are relative to this. */
  readonly cwd: string;
  /** A SQLite file. */
  readonly data?: string | undefined;
  /** `redis://…`, `postgres://…`, `dynamodb:…` or a SQLite file. Not with `data`. */
  readonly share?: string | undefined;
}

const ANSWER_MS = 2_000;
/** Hosts whose own statistics are kept, as many as the page shows; those of the others are summed up. */
const KEPT_HOSTS = 20_000;
/** A name that no site can have, for asking the store whether it is there. */
const PROBE = "store-check.invalid";

/**
 * Opens the state of the service: in memory, in a SQLite file, or in a store that several services share.
 *
 * Throws `UsageError` for an address of another form, and `WorkError` where the file or server cannot be used.
 */
export async function openState(options: StateOptions): Promise<ServiceState> {
  const { policy, cwd, data, share } = options;
  // Grouping by registrable domain needs a list of its own, which takes a moment to load.
  if (policy.groupBy === "domain") await import("politely/domains");
  const opened = await openGiven(data, share, cwd);
  if (opened === undefined) {
    const limiter = politely(policy, { keepStats: KEPT_HOSTS });
    return { limiter, store: "memory", isThere: async () => true, close: () => limiter.close() };
  }
  const limiter = politely(policy, { store: opened.store, keepStats: KEPT_HOSTS });
  const asked = (): Promise<boolean> => {
    const answer = limiter.stats(PROBE, { fleet: true });
    return answer.then(
      () => true,
      () => false,
    );
  };
  return {
    limiter,
    store: opened.kind,
    isThere: () => Promise.race([asked(), after(ANSWER_MS)]),
    async close() {
      await limiter.close();
      await opened.close();
    },
  };
}

async function openGiven(
  data: string | undefined,
  share: string | undefined,
  cwd: string,
): Promise<OpenedStore | undefined> {
  const [option, address] = data === undefined ? ["--share", share] : ["--data", data];
  if (address === undefined) return undefined;
  const kinds: readonly StoreKind[] = data === undefined ? ["redis", "postgres", "dynamodb", "sqlite"] : ["sqlite"];
  try {
    return await openStore(address, { cwd, kinds, option });
  } catch (error) {
    throw storeFailure(option ?? "--share", address, error);
  }
}

function after(ms: number): Promise<boolean> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms, false).unref();
  });
}
