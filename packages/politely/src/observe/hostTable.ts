import type { Series, SeriesMaker } from "./metrics.js";

/** The label of every host that has none of its own. */
export const OTHER = "other";

/** The longest name that becomes a label; a host name has 253 characters at most. */
const LABEL_LENGTH_MOST = 253;
/** Hosts without a label that are remembered, for their activity and their last start. With more, the oldest are forgotten. */
const REST_MOST = 10_000;
/** A host takes over a label when it has been so many times as active as the one that has it, and so many events beyond. */
const TIMES_AS_ACTIVE = 2;
const EVENTS_BEYOND = 10;
/** How often labels may change hands in all, for each label there is. It bounds the names that a metrics server ever sees. */
const MOVES_PER_LABEL = 10;

/** What the statistics count and no event tells in full: an answer that is reported before the release has none, nor has a place that nobody follows. */
export type StatCounts = Record<"throttled" | "lapsed", number>;

/** What is remembered of a host between events. */
export interface KnownHost<S extends Series> {
  readonly key: string;
  /** Where its numbers go, if it has a label of its own. */
  own: S | undefined;
  /** Requests of it that were decided, since it is known. */
  activity: number;
  /** Its last start and the one before, on the limiter's clock; NaN when there was none. */
  lastMs: number;
  beforeMs: number;
  /** Permits in flight, as events tell. */
  open: number;
  /** Permits started until then have lapsed or are released. */
  lapsedUntilMs: number;
  /** When the permit released last had started, and when it was released. */
  releasedMs: number;
  releasedAtMs: number;
  /** The look at the statistics during which `open` last changed. */
  changedInLook: number;
  /** What the statistics said when they were last looked at. */
  seen: StatCounts | undefined;
}

/**
 * Gives labels to hosts: at most `maxHosts` have their own at a time, all others share `"other"`.
 *
 * While labels are left a host gets one when it is first seen. Afterwards `rank` gives them to those that are clearly more active. Who has lost a
 * label does not get it again, and labels change hands at most ten times each: a counter never falls, and the names are bounded for good.
 */
export class HostTable<S extends Series> {
  /** Where the numbers of all others go. */
  other: S;
  /** Hosts with a label of their own, in the order in which they got it. */
  readonly labelled = new Map<string, KnownHost<S>>();
  readonly #rest = new Map<string, KnownHost<S>>();
  readonly #barred = new Set<string>();

  constructor(
    readonly maxHosts: number,
    readonly maker: SeriesMaker<S>,
  ) {
    this.other = maker.make(OTHER);
  }

  /** The host, if it is remembered. */
  find(key: string): KnownHost<S> | undefined {
    return this.labelled.get(key) ?? this.#rest.get(key);
  }

  /** The host, remembered from now on. */
  at(key: string): KnownHost<S> {
    return this.find(key) ?? this.#add(key);
  }

  /** Every series with its label, that of the others first. */
  all(): readonly (readonly [label: string, series: S])[] {
    return [
      [OTHER, this.other],
      ...[...this.labelled.values()].map(({ key, own = this.other }) => [key, own] as const),
    ];
  }

  /** The same; all begin anew. */
  takeAll(): ReturnType<HostTable<S>["all"]> {
    const all = this.all();
    for (const host of this.labelled.values()) host.own = this.maker.make(host.key);
    this.other = this.maker.make(OTHER);
    return all;
  }

  /** Hands labels of hosts with little activity to those with much. Returns the hosts that got one. */
  rank(): readonly KnownHost<S>[] {
    const falling = [...this.labelled.values()].sort((one, other) => one.activity - other.activity);
    const promoted: KnownHost<S>[] = [];
    if (falling.length === 0) return promoted;
    // Most are far below even the weakest: they need no place in a list.
    const rising = [...this.#rest.values()]
      .filter((host) => host.activity >= neededAgainst(falling[0]) && this.#canHaveLabel(host.key))
      .sort((one, other) => other.activity - one.activity);
    for (const [index, host] of rising.entries()) {
      const weakest = falling.at(index);
      if (weakest === undefined || host.activity < neededAgainst(weakest)) break;
      if (this.#barred.size >= MOVES_PER_LABEL * this.maxHosts) break;
      if (weakest.own !== undefined) this.maker.absorb(this.other, weakest.own);
      weakest.own = undefined;
      this.#barred.add(weakest.key);
      this.labelled.delete(weakest.key);
      this.#remember(weakest);
      this.#rest.delete(host.key);
      this.#label(host);
      promoted.push(host);
    }
    return promoted;
  }

  #add(key: string): KnownHost<S> {
    const none = Number.NaN;
    const starts = { activity: 0, open: 0, lastMs: none, beforeMs: none, releasedMs: none, releasedAtMs: none };
    const looks = { lapsedUntilMs: Number.NEGATIVE_INFINITY, changedInLook: -1, seen: undefined };
    const host: KnownHost<S> = { key, own: undefined, ...starts, ...looks };
    if (this.labelled.size < this.maxHosts && this.#canHaveLabel(key)) this.#label(host);
    else this.#remember(host);
    return host;
  }

  #label(host: KnownHost<S>): void {
    host.own = this.maker.make(host.key);
    this.labelled.set(host.key, host);
  }

  #remember(host: KnownHost<S>): void {
    this.#rest.set(host.key, host);
    const [oldest] = this.#rest.size > REST_MOST ? this.#rest.keys() : [];
    if (oldest !== undefined) this.#rest.delete(oldest);
  }

  /** Two names must not become one label, none may be mistaken for the label of the others, and half a character cannot be written as UTF-8. */
  #canHaveLabel(key: string): boolean {
    const isFine = key !== OTHER && key !== "" && key.length <= LABEL_LENGTH_MOST && !/\p{Surrogate}/u.test(key);
    return isFine && !this.#barred.has(key);
  }
}

/** How active a host has to be to take over another's label. */
function neededAgainst({ activity }: { readonly activity: number }): number {
  return TIMES_AS_ACTIVE * activity + EVENTS_BEYOND;
}
