import type { LimiterParts } from "./engine/limiter.js";
import type { Connectable } from "./http/connectHttp.js";
import type { Limits } from "./policy/types.js";
import type { SharedKeyLimiter, SharedLimiter, SharedOptions } from "./sharedTypes.js";
import type { Limiter, LimiterOptions } from "./types.js";

/** A limiter as the root puts it together: it can be connected to HTTP and to a log. */
export type Front = Connectable & Pick<Limiter, "subscribe"> & { announce(): void };

/** What makes the limiter that the root puts together. */
export type Create<Made extends Front> = (parts: LimiterParts) => Made;

/** Makes the limiter in front of a store, which queues and keeps the books of this process. */
export type MakeFront = <Made extends Front>(options: Omit<LimiterOptions, "store">, create: Create<Made>) => Made;

/** How limiters with a store are made. */
export interface Sharing {
  /** For any number of hosts. */
  limiter(options: SharedOptions, makeFront: MakeFront): SharedLimiter;
  /** For one key. `change` takes limits that apply from the next `configure` on. */
  keyLimiter(options: SharedOptions, key: string, makeFront: MakeFront, change: ChangeLimits): SharedKeyLimiter;
}

export type ChangeLimits = (limits: Limits) => void;

let known: Sharing | undefined;

/** Says how limiters with a store are made. The entries of stores do so, that programs without one need not load all of it. */
export function provideSharing(sharing: Sharing): void {
  known = sharing;
}

/** What an entry of a store has provided. Throws `TypeError`, with what to import, if none was loaded. */
export function sharing(): Sharing {
  if (known !== undefined) return known;
  throw new TypeError(
    'A store of your own needs what all stores have in common. Write: import "politely/store"; it is part of politely/redis, politely/sqlite and the others, too.',
  );
}
