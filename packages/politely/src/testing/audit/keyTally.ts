import type { Asked } from "./entries.js";
import type { AuditRule } from "./quota.js";
import type { AuditedKey, StatusCount, TraceEntry } from "./types.js";

/** Which key, and what it is held against. */
export interface TallyAbout {
  readonly kind: AuditedKey["kind"];
  readonly key: string;
  readonly intent?: string;
  readonly origin: string;
  readonly rule: AuditRule;
  /** The name under which a record of costs speaks of this key. */
  readonly costName: string;
}

type Costs = Readonly<Record<"rate" | "window" | "quota", number>>;

/** What was counted under one key, but for the entries themselves: there may be a million keys of one entry each. */
export class KeyTally {
  readonly about: TallyAbout;
  /** Entries counted under it. */
  count = 0;
  readonly #statuses: { readonly status: number; count: number }[] = [];
  #asked: Asked[] | undefined;
  // Only entries that cost something else than one unit. Most keys have none, and an empty map is larger than the rest.
  #costs: Map<number, Costs> | undefined;

  constructor(
    /** Its place among all keys. */
    readonly number: number,
    about: TallyAbout,
  ) {
    this.about = about;
  }

  add(id: number, status: number | undefined, cost: TraceEntry["cost"]): void {
    this.count += 1;
    if (status !== undefined) this.#countStatus(status);
    if (cost === undefined || cost === 1) return;
    this.#costs ??= new Map();
    this.#costs.set(id, this.#readCost(cost));
  }

  addAsked(asked: Asked): void {
    this.#asked ??= [];
    this.#asked.push(asked);
  }

  get asked(): readonly Asked[] {
    return this.#asked ?? [];
  }

  /** How many answers had each status, lowest first. */
  statuses(): StatusCount[] {
    return this.#statuses.map((one) => ({ ...one })).toSorted((one, other) => one.status - other.status);
  }

  unitsOf(id: number, kind: "rate" | "window" | "quota"): number {
    return this.#costs?.get(id)?.[kind] ?? 1;
  }

  // A key sees few of them. An object by status would have room for all below the greatest.
  #countStatus(status: number): void {
    const known = this.#statuses.find((one) => one.status === status);
    if (known === undefined) this.#statuses.push({ status, count: 1 });
    else known.count += 1;
  }

  #readCost(cost: NonNullable<TraceEntry["cost"]>): Costs {
    if (typeof cost === "number") return { rate: cost, window: cost, quota: cost };
    const own = Object.hasOwn(cost, this.about.costName) ? cost[this.about.costName] : undefined;
    const of = (kind: string): number => own ?? (Object.hasOwn(cost, kind) ? cost[kind] : 1);
    return { rate: of("rate"), window: of("window"), quota: of("quota") };
  }
}
