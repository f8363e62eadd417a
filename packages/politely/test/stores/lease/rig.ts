import { expect } from "vitest";
import { StoreError } from "../../../src/errors.js";
import { exclusive, type Lease, type LeaseOptions, type LeaseRefusal } from "../../../src/lease.js";
import { memoryStore } from "../../../src/stores/memory.js";
import type { LeaseOperation, Operation } from "../../../src/stores/operations.js";
import type { Store } from "../../../src/stores/store.js";
import { VirtualClock } from "../../../src/testing/index.js";

/** What becomes of one operation on its way to a store and back. */
export interface Passage {
  /** Until it arrives. */
  readonly thereMs: number;
  /** Until the reply is back, or the failure. */
  readonly backMs: number;
  /** `lost`: never arrives. `unheard`: carried out, but its reply is lost; both fail. `silent`: never answered at all. */
  readonly fate: "fine" | "lost" | "unheard" | "silent";
}

/** A passage that takes no time. */
export const AT_ONCE: Passage = { thereMs: 0, backMs: 0, fate: "fine" };

/** A store whose operations go through `passage`, and are all noted when they are sent. */
export interface LinkedStore extends Store {
  readonly sent: LeaseOperation["act"][];
  passage: (act: LeaseOperation["act"]) => Passage;
}

/** Puts a link that may be slow or fail between a client and its store. Its delays are those of `clock`. */
export function linkTo(store: Store, clock: VirtualClock): LinkedStore {
  const pause = (ms: number): Promise<void> =>
    ms === 0 ? Promise.resolve() : new Promise((resolve) => void clock.setTimer(clock.now() + ms, resolve));
  const linked: LinkedStore = {
    name: store.name,
    timeline: store.timeline,
    sent: [],
    passage: () => AT_ONCE,
    async transact<Op extends Operation>(keys: readonly string[], operation: Op) {
      const { act } = operation as LeaseOperation;
      linked.sent.push(act);
      const { thereMs, backMs, fate } = linked.passage(act);
      await pause(thereMs);
      if (fate === "lost") {
        await pause(backMs);
        throw new StoreError("The request was lost on its way.");
      }
      const reply = await store.transact(keys, operation);
      await pause(backMs);
      if (fate === "silent") await new Promise(() => undefined);
      if (fate === "unheard") throw new StoreError("The reply was lost on its way.");
      return reply;
    },
  };
  return linked;
}

/** A link over which everything fails. */
export function failing(): Passage {
  return { ...AT_ONCE, fate: "lost" };
}

/** A store in memory on a clock of its own, a link to it, and the way to ask through that link. */
export interface LeaseRig {
  readonly clock: VirtualClock;
  readonly store: Store;
  readonly link: LinkedStore;
  ask(options?: Partial<LeaseOptions>, through?: Store): Promise<Lease | LeaseRefusal>;
  /** Asks, and fails unless the lease is given. */
  take(options?: Partial<LeaseOptions>, through?: Store): Promise<Lease>;
}

/** Makes a rig whose leases are called "nightly" and live 30 s. */
export function leaseRig(clock: VirtualClock = new VirtualClock()): LeaseRig {
  const store = memoryStore(() => Math.floor(clock.now() * 1_000));
  const link = linkTo(store, clock);
  const ask: LeaseRig["ask"] = (options = {}, through = link) =>
    exclusive(through, "nightly", { ttl: "30s", clock, ...options });
  return { clock, store, link, ask, take: async (options, through) => held(await ask(options, through)) };
}

/** A lease that must have been given. */
export function held(answer: Lease | LeaseRefusal): Lease {
  expect(answer).toMatchObject({ held: true });
  return answer as Lease;
}
