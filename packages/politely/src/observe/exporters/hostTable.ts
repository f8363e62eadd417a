import type { Series, SeriesMaker } from "./series.js";

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

/** What is remembered of a host between events. */
export class KnownHost<S extends Series> {
  /** Requests of it that were decided, since it is known. */
  activity = 0;
  /** Its last start and the one before, on the limiter's clock; NaN when there was none. */
  lastMs = Number.NaN;
  beforeMs = Number.NaN;
  /** Permits in flight, as events tell. */
  open = 0;
  /** Permits started until then have lapsed or are released. */
  lapsedUntilMs = Number.NEGATIVE_INFINITY;
  /** When the permit released last had started, and when it was released. */
  releasedMs = Number.NaN;
  releasedAtMs = Number.NaN;
  /** The look at the statistics during which `open` last changed. */
  changedInLook = -1;
  /** What the statistics said when they were last looked at. */
  readonly seen = { throttled: 0, lapsed: 0 };

  constructor(
    readonly key: string,
    public label: string,
    public series: S,
  ) {}
}

/**
 * Gives labels to hosts: at most `maxHosts` have their own at a time, all others share `"other"`.
 *
 * While labels are left a host gets one when it is first seen. Afterwards `rank` gives them to those that are clearly more active. Who has lost a
 * label does not get it again, and labels change hands at most ten times each: a counter never falls, and the names are bounded for good.
 */
export class HostTable<S extends Series> {
  readonly other: S;
  readonly #labelled = new Map<string, KnownHost<S>>();
  readonly #rest = new Map<string, KnownHost<S>>();
  readonly #barred = new Set<string>();
  #hot: KnownHost<S> | undefined;

  constructor(
    readonly maxHosts: number,
    readonly maker: SeriesMaker<S>,
  ) {
    this.other = maker.make(OTHER);
  }

  /** Hosts with a label of their own, in the order in which they got it. */
  get labelled(): ReadonlyMap<string, KnownHost<S>> {
    return this.#labelled;
  }

  /** The host, if it is remembered. */
  find(key: string): KnownHost<S> | undefined {
    if (this.#hot?.key === key) return this.#hot;
    return this.#labelled.get(key) ?? this.#rest.get(key);
  }

  /** The host, remembered from now on. */
  at(key: string): KnownHost<S> {
    const hot = this.#hot;
    if (hot?.key === key) return hot;
    const host = this.#labelled.get(key) ?? this.#rest.get(key) ?? this.#add(key);
    this.#hot = host;
    return host;
  }

  /** Hands labels of hosts with little activity to those with much. Returns the hosts that got one. */
  rank(): KnownHost<S>[] {
    if (this.#rest.size === 0 || this.maxHosts === 0) return [];
    const falling = [...this.#labelled.values()].sort(byActivity).reverse();
    if (falling.length === 0) return [];
    // Most are far below even the weakest: they need no place in a list.
    const least = neededAgainst(falling[0]);
    const rising: KnownHost<S>[] = [];
    for (const host of this.#rest.values()) {
      if (host.activity >= least && this.#canHaveLabel(host.key)) rising.push(host);
    }
    rising.sort(byActivity);
    const promoted: KnownHost<S>[] = [];
    for (const [index, host] of rising.entries()) {
      const weakest = falling[index];
      if (weakest === undefined || host.activity < neededAgainst(weakest)) break;
      if (this.#barred.size >= MOVES_PER_LABEL * this.maxHosts) break;
      this.#demote(weakest);
      this.#rest.delete(host.key);
      this.#label(host);
      promoted.push(host);
    }
    return promoted;
  }

  #add(key: string): KnownHost<S> {
    const host = new KnownHost<S>(key, OTHER, this.other);
    if (this.#labelled.size < this.maxHosts && this.#canHaveLabel(key)) this.#label(host);
    else this.#remember(host);
    return host;
  }

  #label(host: KnownHost<S>): void {
    host.label = host.key;
    host.series = this.maker.make(host.key);
    this.#labelled.set(host.key, host);
  }

  #demote(host: KnownHost<S>): void {
    this.maker.absorb(this.other, host.series);
    host.label = OTHER;
    host.series = this.other;
    this.#barred.add(host.key);
    this.#labelled.delete(host.key);
    this.#remember(host);
  }

  #remember(host: KnownHost<S>): void {
    this.#rest.set(host.key, host);
    if (this.#rest.size <= REST_MOST) return;
    for (const key of this.#rest.keys()) {
      if (this.#hot?.key === key) this.#hot = undefined;
      this.#rest.delete(key);
      return;
    }
  }

  /** Two names must not become one label, and none may be mistaken for the label of the others. */
  #canHaveLabel(key: string): boolean {
    if (key === OTHER || key === "" || key.length > LABEL_LENGTH_MOST || this.#barred.has(key)) return false;
    return !LONE_SURROGATE.test(key);
  }
}

/** Half a character, which cannot be written as UTF-8. */
const LONE_SURROGATE = /\p{Surrogate}/u;

/** How active a host has to be to take over another's label. */
function neededAgainst({ activity }: { readonly activity: number }): number {
  return TIMES_AS_ACTIVE * activity + EVENTS_BEYOND;
}

function byActivity<S extends Series>(a: KnownHost<S>, b: KnownHost<S>): number {
  return b.activity - a.activity;
}
