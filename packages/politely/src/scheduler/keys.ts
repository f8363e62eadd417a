import type { Rule } from "../core/rule.js";
import type { Books } from "./books.js";
import type { Ledger } from "./ledger.js";
import { HAS_GATE, IS_IDLE } from "./slab.js";

/** The key that all hosts beyond `maxKeys` share. */
export const OVERFLOW_KEY = "(beyond maxKeys)";

/**
 * The row of hosts beyond `maxKeys` that have no limits, which must not wait for the others out there.
 *
 * It reads as an intent of no host. No policy has a rule for that, so that it keeps its own when the policy changes.
 */
const FREE_ROW = "intent\n\n(beyond maxKeys)";
/** What statistics call that row. */
const FREE_HOSTS = "(beyond maxKeys, no limits)";

/** Rows of scopes and intents that stay when they owe nothing: a change of policy may ask when their last start was. Beyond that, only those that owe. */
const SCOPES_KEPT = 10_000;
/** The row of what is over everything, which always stays. */
const GLOBAL_ROW = "global";

/** Grants between two looks at rows that may owe nothing any more, and how many are looked at then. */
const SWEEP_EVERY_MASK = 1023;
const SWEEP_COUNT = 32;
/** Rows looked at for each new key, so that a crawl of ever new hosts forgets as fast as it meets them. */
const SWEEP_PER_KEY = 4;
/** A whole sweep because the table is full happens at most this often. */
const FULL_SWEEP_EVERY_US = 1_000_000;

/** A `Map` has room for 2^24 keys, those that went included until it is tidied, which it is when they are half of it. With more hosts than this it could be full. */
const HOSTS_MOST = 8_388_608;
/** A table of hosts below this fits into the caches of a processor. Seven eighths of a power of two, which the capacity of a `Map` is. */
const FIRST_CROWDED = 57_344;

/** The bounds of the table, and what happens when a row goes. */
export interface KeysOptions {
  readonly maxKeys: number;
  readonly keepStats: number;
  /** A row is about to be given back. */
  readonly onDrop: (key: string, wasFolded: boolean) => void;
}

/**
 * Which row belongs to which key. Rows are made on first use and given back when they owe nothing.
 *
 * Hosts that owe nothing but have statistics stay while they are among the `keepStats` that became idle last.
 */
export class Keys {
  readonly hosts = new Map<string, number>();
  /** Intents, scopes and the rest that is no host. */
  readonly scopes = new Map<string, number>();
  /** Idle hosts by row, the longest idle first. */
  readonly #idle = new Map<number, string>();
  #hostCursor: Iterator<[string, number]> | undefined;
  #scopeCursor: Iterator<[string, number]> | undefined;
  #fullSweepUs = Number.NEGATIVE_INFINITY;
  #grants = 0;
  readonly #maxHosts: number;
  /** So many hosts fill seven eighths of their table. */
  #crowdedAt: number;

  constructor(
    readonly ledger: Ledger,
    readonly books: Books,
    readonly options: KeysOptions,
  ) {
    this.#maxHosts = Math.min(options.maxKeys, HOSTS_MOST);
    this.#crowdedAt = options.keepStats > 0 ? FIRST_CROWDED : Number.POSITIVE_INFINITY;
  }

  /** The row of a host, made if need be; undefined when the table is full of hosts that owe time. */
  host(key: string, rule: Rule, nowUs: number): number | undefined {
    const known = this.hosts.get(key);
    if (known !== undefined) {
      if (this.ledger.slab.hasFlag(known, IS_IDLE)) this.#rouse(known);
      return known;
    }
    // While the shared row owes time, so may this host: it stays there.
    const shared = this.scopes.get(rule.enabled ? OVERFLOW_KEY : FREE_ROW);
    if (shared !== undefined && !this.#owesNothing(shared, nowUs)) return undefined;
    if (this.hosts.size >= this.#maxHosts && !this.#makeRoom(nowUs)) return undefined;
    const slot = this.#create(rule);
    this.hosts.set(key, slot);
    if (this.hosts.size >= this.#crowdedAt) this.#widen();
    return slot;
  }

  /**
   * Lets the table of hosts grow before it is full.
   *
   * A full `Map` has two entries to a bucket, so that most look-ups pass another host before their own and wait for memory twice as often. It grows when
   * the next key finds it full, and cannot be told to: so it is filled with numbers, which are gone again before that key comes. Where memory
   * counts most (`keepStats: 0`) it is left alone.
   */
  #widen(): void {
    const table: Map<unknown, number> = this.hosts;
    const room = this.#crowdedAt / 7;
    for (let filler = 0; filler < room; filler++) table.set(filler, -1);
    for (let filler = 0; filler < room; filler++) table.delete(filler);
    this.#crowdedAt *= 2;
  }

  /** The row of something that is not a host. */
  scope(name: string, rule: Rule): number {
    const known = this.scopes.get(name);
    if (known !== undefined) return known;
    const slot = this.#create(rule);
    this.scopes.set(name, slot);
    return slot;
  }

  /** The row of a host that has no limits and, beyond `maxKeys`, no row of its own. */
  free(rule: Rule): number {
    return this.scope(FREE_ROW, rule);
  }

  /**
   * Whose intent's row a host beyond `maxKeys` takes: its own, so that it owes the same when it gets a row of its own. When there are as many rows as
   * there may be keys, those of one entry of the policy share it.
   */
  intentOwner(host: string, entry: string, intent: string): string {
    if (this.scopes.has(intentRow(host, intent))) return host;
    const isFull = this.scopes.size >= this.options.maxKeys || this.scopes.has(intentRow(entry, intent));
    return isFull ? entry : host;
  }

  /** The rows that hosts beyond `maxKeys` share, as far as they exist: of those with limits and of those without. */
  get overflow(): readonly (readonly [string, number])[] {
    return [OVERFLOW_KEY, FREE_ROW].flatMap((name) => {
      const slot = this.scopes.get(name);
      return slot === undefined ? [] : [[name === FREE_ROW ? FREE_HOSTS : name, slot] as const];
    });
  }

  setRule(slot: number, rule: Rule): void {
    const { slab, profiles } = this.ledger;
    slab.setProfileNumber(slot, profiles.numberOf(rule));
  }

  /** A start was granted: now and then some more rows are looked at. */
  granted(nowUs: number): void {
    if ((++this.#grants & SWEEP_EVERY_MASK) === 0) this.sweep(nowUs, SWEEP_COUNT);
  }

  /** Looks at some more rows and lets those go that owe nothing. Not between finding a row and taking from it: a new row owes nothing either. */
  sweep(nowUs: number, count = SWEEP_PER_KEY): void {
    this.#hostCursor ??= this.hosts.entries();
    for (let index = 0; index < count; index++) {
      const next = this.#hostCursor.next();
      if (next.done === true) {
        this.#hostCursor = undefined;
        break;
      }
      const [key, slot] = next.value;
      if (this.#owesNothing(slot, nowUs)) this.#settle(key, slot);
    }
    this.#sweepScopes(count, nowUs);
  }

  /** Looks at one row. The host may be gone afterwards. */
  sweepOne(key: string, slot: number, nowUs: number): void {
    if (this.#owesNothing(slot, nowUs)) this.#settle(key, slot);
  }

  /** Looks at every row, so that what is kept is exactly what was promised. */
  sweepAll(nowUs: number): void {
    this.#hostCursor = undefined;
    const idle = [...this.hosts].filter(([, slot]) => this.#owesNothing(slot, nowUs));
    idle.sort((a, b) => this.ledger.lastUs(a[1]) - this.ledger.lastUs(b[1]));
    for (const [key, slot] of idle) this.#settle(key, slot);
    this.#sweepScopes(this.scopes.size, nowUs);
  }

  #owesNothing(slot: number, nowUs: number): boolean {
    return !this.ledger.slab.hasFlag(slot, HAS_GATE | IS_IDLE) && this.ledger.isFresh(slot, nowUs);
  }

  #settle(key: string, slot: number): void {
    if (this.options.keepStats === 0 || this.books.isBlank(slot)) {
      this.#drop(key, slot, this.ledger.lastUs(slot) !== Number.NEGATIVE_INFINITY);
      return;
    }
    this.ledger.forget(slot);
    this.ledger.slab.setFlag(slot, IS_IDLE, true);
    this.#idle.set(slot, key);
    if (this.#idle.size > this.options.keepStats) this.#foldOldest();
  }

  #foldOldest(): boolean {
    const oldest = this.#idle.entries().next();
    if (oldest.done === true) return false;
    this.#drop(oldest.value[1], oldest.value[0], true);
    return true;
  }

  #drop(key: string, slot: number, isFolded: boolean): void {
    if (isFolded) this.books.fold(slot);
    this.#idle.delete(slot);
    this.hosts.delete(key);
    // A quarter full, a Map becomes half as large.
    if (this.hosts.size < (this.#crowdedAt * 2) / 7 && this.#crowdedAt > FIRST_CROWDED) this.#crowdedAt /= 2;
    this.ledger.forget(slot);
    this.ledger.slab.release(slot);
    this.options.onDrop(key, isFolded);
  }

  /** Takes a row that owes time by now out of the idle ones, so that it is not folded away. */
  rouseIfOwing(slot: number, nowUs: number): void {
    if (this.ledger.slab.hasFlag(slot, IS_IDLE) && !this.ledger.isFresh(slot, nowUs)) this.#rouse(slot);
  }

  #rouse(slot: number): void {
    this.#idle.delete(slot);
    this.ledger.slab.setFlag(slot, IS_IDLE, false);
  }

  #makeRoom(nowUs: number): boolean {
    if (this.#foldOldest()) return true;
    if (nowUs < this.#fullSweepUs) return false;
    this.#fullSweepUs = nowUs + FULL_SWEEP_EVERY_US;
    this.sweepAll(nowUs);
    return this.hosts.size < this.#maxHosts || this.#foldOldest();
  }

  #create(rule: Rule): number {
    const slot = this.ledger.slab.allocate();
    this.setRule(slot, rule);
    return slot;
  }

  #sweepScopes(count: number, nowUs: number): void {
    if (this.scopes.size === 0) return;
    this.#scopeCursor ??= this.scopes.entries();
    for (let index = 0; index < count; index++) {
      const next = this.#scopeCursor.next();
      if (next.done === true) {
        this.#scopeCursor = undefined;
        return;
      }
      const [name, slot] = next.value;
      if (!this.#owesNothing(slot, nowUs)) continue;
      const isHosts = name === OVERFLOW_KEY || name === FREE_ROW;
      if (!isHosts && (name === GLOBAL_ROW || this.scopes.size <= SCOPES_KEPT)) {
        continue;
      }
      if (isHosts) this.books.fold(slot);
      this.scopes.delete(name);
      this.ledger.forget(slot);
      this.ledger.slab.release(slot);
      if (isHosts) this.options.onDrop(name === FREE_ROW ? FREE_HOSTS : name, true);
    }
  }
}

/** What the names of all intents' rows begin with. */
export const INTENT_ROWS = "intent\n";

/** The name of an intent's row. */
export function intentRow(owner: string, intent: string): string {
  return `${INTENT_ROWS}${owner}\n${intent}`;
}
