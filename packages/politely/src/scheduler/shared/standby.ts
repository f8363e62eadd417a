import type { SettleOperation, StopKind, TakeKey, TakeOperation, TakeReply } from "../../core/shared/operation.js";
import { partOf, ruleIdOf } from "../../core/shared/ruleNumbers.js";
import type { Store } from "../../stores/store.js";
import { costAt } from "../lane.js";
import type { Link } from "./link.js";
import type { Plan } from "./plan.js";
import { Recollection } from "./recollection.js";

/** How many processes are assumed when nobody has ever said. */
const UNKNOWN_FLEET = 10;
/** Starts that are told to a store when it is back, for each lane; of more, the oldest are dropped. */
const STARTS_MOST = 1_000;
/** Lanes of which starts are kept, at most. */
const LANES_MOST = 10_000;
/** Between two looks at places that are all taken. */
const PLACES_POLL_US = 20_000;

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
  /** What the store said before it went. */
  readonly recollection = new Recollection();
  /** How many permits of this process hold a place at a key, whoever granted them. */
  readonly #held = new Map<string, number>();

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

  /** A permit takes a place at these keys, or gives it back. */
  count({ storeKeys, isFollowed }: Plan, change: 1 | -1): void {
    if (!isFollowed) return;
    for (const key of storeKeys) {
      const held = (this.#held.get(key) ?? 0) + change;
      if (held > 0) this.#held.set(key, held);
      else this.#held.delete(key);
    }
  }

  /** Grants what this process's share of the limits allows, after all it has started and heard before. */
  async share(plan: Plan, operation: TakeOperation): Promise<TakeReply> {
    const known = this.#fleets.get(plan.storeKeys[0]) ?? this.#fleet;
    const parts = known === 0 ? UNKNOWN_FLEET : known;
    const keys = operation.keys.map((key) => {
      const rule = partOf(key.rule, parts);
      return { ...key, rule, ruleId: ruleIdOf(rule), slowUs: key.slowUs * parts, period: hereAndNow(key) };
    });
    await this.#recall(plan, keys);
    const stop = this.#stopOf(plan, keys);
    if (stop !== undefined) return stop;
    // What was said about turns is of the other timeline.
    const own = { ...operation, keys, turnUs: 0, joinedUs: 0, ticket: "", horizonUs: 0, member: "" };
    const reply = await this.store.transact(plan.storeKeys, own);
    for (const { startedUs } of reply.starts) this.#note(plan, operation.keys, startedUs);
    return reply;
  }

  /** Counts here what this process has started with the store. */
  async #recall(plan: Plan, keys: readonly TakeKey[]): Promise<void> {
    const recent = this.recollection.takeStarts(plan);
    for (let from = 0; from < recent.length; ) {
      const { cost } = recent[from];
      const nowUs = this.nowUs();
      const agesUs: number[] = [];
      for (; from < recent.length && recent[from].cost === cost; from++) {
        const { atUs, count } = recent[from];
        for (let number = 0; number < count; number++) agesUs.push(Math.max(0, nowUs - atUs));
      }
      const then = keys.map((key, index) => ({ ...key, cost: costAt(cost, index) }));
      const told = { kind: "record", asker: "", sequence: 0, keys: then, agesUs: agesUs.slice(-STARTS_MOST) } as const;
      await this.store.transact(plan.storeKeys, told);
    }
  }

  /** What this process knows beyond the limits: a hold that the store spoke of, and places that are still taken. */
  #stopOf(plan: Plan, keys: readonly TakeKey[]): TakeReply | undefined {
    const nowUs = this.nowUs();
    const held = this.recollection.holdOf(plan, nowUs);
    if (held !== undefined) {
      const { kind, untilUs, because } = held.hold;
      return stopped(nowUs, held.index, kind, untilUs, because);
    }
    const full = keys.findIndex(
      ({ rule }, index) => rule.concurrency > 0 && (this.#held.get(plan.storeKeys[index]) ?? 0) >= rule.concurrency,
    );
    return full < 0 ? undefined : stopped(nowUs, full, "concurrency", nowUs + PLACES_POLL_US, "");
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
      this.link.keep(plan.storeKeys, (sender) => ({ kind: "record", ...sender, keys, agesUs: this.#takeAges(name) }));
    }
    missed.startedUs.push(startedUs);
    if (missed.startedUs.length > STARTS_MOST) missed.startedUs.shift();
  }

  /** How long ago the starts of a lane were that the store does not know of. What comes from now on is told next. */
  #takeAges(name: string): number[] {
    const { startedUs = [] } = this.#missed.get(name) ?? {};
    this.#missed.delete(name);
    const nowUs = this.nowUs();
    return startedUs.map((atUs) => Math.max(0, nowUs - atUs));
  }
}

function stopped(nowUs: number, key: number, kind: StopKind, untilUs: number, because: string): TakeReply {
  const stop = { key, kind, readyUs: untilUs, turnUs: untilUs, because };
  return { nowUs, starts: [], stop, isCooling: false, stricterAt: -1, fleet: 0, isStalePeriod: false };
}

/** A calendar period on this process's clock is not known here: the share of a quota is for as long as the store is away. */
function hereAndNow({ period }: TakeKey): TakeKey["period"] {
  return period === undefined ? undefined : { index: period.index, fromUs: 0, untilUs: Number.MAX_SAFE_INTEGER };
}
