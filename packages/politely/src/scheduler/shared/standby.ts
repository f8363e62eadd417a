import type { SettleOperation, TakeKey, TakeOperation, TakeReply } from "../../core/shared/operation.js";
import { partOf, ruleIdOf } from "../../core/shared/ruleNumbers.js";
import type { Store } from "../../stores/store.js";
import type { Link } from "./link.js";
import type { Plan } from "./plan.js";

/** How many processes are assumed when nobody has ever said. */
const UNKNOWN_FLEET = 10;
/** Starts that are told to a store when it is back, for each lane; of more, the oldest are dropped. */
const STARTS_MOST = 1_000;
/** Lanes of which starts are kept, at most. */
const LANES_MOST = 10_000;

/** The starts of one lane while the store was away. */
interface Missed {
  readonly plan: Plan;
  readonly keys: readonly TakeKey[];
  /** On this process's clock. */
  readonly startedUs: number[];
}

/**
 * Stands in for a store that is away: grants this process's share of each limit, or everything.
 *
 * It keeps what it granted, and tells the store when that is back, so that coming back makes no burst.
 */
export class Standby {
  /** Processes that share a key, as the store last said; at any key, and by the name of the first. */
  #fleet = 0;
  readonly #fleets = new Map<string, number>();
  readonly #missed = new Map<string, Missed>();

  constructor(
    /** The state of the shares, on this process's clock. */
    readonly store: Store,
    readonly link: Link,
    readonly nowUs: () => number,
  ) {}

  /** Hears how many processes share the keys of a plan. */
  learn({ storeKeys: [first] }: Plan, fleet: number): void {
    this.#fleet = fleet;
    if (this.#fleets.size >= LANES_MOST) this.#fleets.clear();
    this.#fleets.set(first, fleet);
  }

  /** Grants what this process's share of the limits allows. */
  async share(plan: Plan, operation: TakeOperation): Promise<TakeReply> {
    const known = this.#fleets.get(plan.storeKeys[0]) ?? this.#fleet;
    const parts = known === 0 ? UNKNOWN_FLEET : known;
    const keys = operation.keys.map((key) => {
      const rule = partOf(key.rule, parts);
      return { ...key, rule, ruleId: ruleIdOf(rule), slowUs: key.slowUs * parts, period: hereAndNow(key) };
    });
    // What was said about turns is of the other timeline.
    const own = { ...operation, keys, turnUs: 0, joinedUs: 0, ticket: "", horizonUs: 0, member: "" };
    const reply = await this.store.transact(plan.storeKeys, own);
    for (const { startedUs } of reply.starts) this.#note(plan, operation.keys, startedUs);
    return reply;
  }

  /** Grants everything. */
  open(plan: Plan, operation: TakeOperation): TakeReply {
    const nowUs = this.nowUs();
    const none = plan.keys.map(() => 0);
    const starts = Array.from({ length: operation.count }, () => {
      this.#note(plan, operation.keys, nowUs);
      return { startedUs: nowUs, token: 0, unitsAfter: none, previousUs: none };
    });
    return { nowUs, starts, stop: undefined, isCooling: false, stricterAt: -1, fleet: 0, isStalePeriod: false };
  }

  /** Hears an answer while the store is away. */
  async settle(plan: Plan, operation: SettleOperation): Promise<void> {
    await this.store.transact(plan.storeKeys, operation);
  }

  #note(plan: Plan, keys: readonly TakeKey[], startedUs: number): void {
    const name = plan.storeKeys.join("\n");
    let missed = this.#missed.get(name);
    if (missed === undefined) {
      if (this.#missed.size >= LANES_MOST) return;
      missed = { plan, keys, startedUs: [] };
      this.#missed.set(name, missed);
      this.link.keep(() => this.#tell(name));
    }
    missed.startedUs.push(startedUs);
    if (missed.startedUs.length > STARTS_MOST) missed.startedUs.shift();
  }

  /** Tells the store what was started without it. What comes meanwhile is told next. */
  async #tell(name: string): Promise<void> {
    const missed = this.#missed.get(name);
    if (missed === undefined) return;
    this.#missed.delete(name);
    const nowUs = this.nowUs();
    const agesUs = missed.startedUs.map((startedUs) => Math.max(0, nowUs - startedUs));
    try {
      await this.link.sendAnyway(missed.plan.storeKeys, (sender) => ({
        kind: "record",
        ...sender,
        keys: missed.keys,
        agesUs,
      }));
    } catch (error) {
      const later = this.#missed.get(name)?.startedUs ?? [];
      this.#missed.set(name, { ...missed, startedUs: [...missed.startedUs, ...later].slice(-STARTS_MOST) });
      throw error;
    }
  }
}

/** A calendar period on this process's clock is not known here: the share of a quota is for as long as the store is away. */
function hereAndNow({ period }: TakeKey): TakeKey["period"] {
  return period === undefined ? undefined : { index: period.index, fromUs: 0, untilUs: Number.MAX_SAFE_INTEGER };
}
