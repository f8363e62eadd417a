import { adopt, forgetPacing } from "../core/change.js";
import { owesUntil } from "../core/decide.js";
import { type Key, ROW } from "../core/key.js";
import { inFlight, isFollowed } from "../core/limits/places.js";
import { rateDrain } from "../core/limits/rate.js";
import type { Rule } from "../core/rule.js";
import { CapacityError } from "../errors.js";
import type { CompiledPolicy, ResolvedTarget } from "../policy/types.js";
import type { ResetWhat } from "../types.js";
import { HOST_ONLY, type Need } from "./arbiter.js";
import type { Books } from "./books.js";
import type { Engine } from "./engine.js";
import { HAS_GATE, HAS_PORT, IS_IDLE, IS_OTHER, PROFILE_MASK, type Slab } from "./slab.js";

const { FLIGHT, LAST_US, OWED, PROFILE } = ROW;

/** The row of what is over everything. Names of rows that are no hosts begin with a line feed, which no host has. */
const GLOBAL_ROW = "\nglobal";
/** Rows of intents and scopes that stay when they owe nothing, so that a rule that comes later finds their last start. */
const OTHERS_KEPT = 10_000;
/** Grants between two looks at rows, and how many are looked at then. */
const SWEEP_EVERY_MASK = 1023;
const SWEEP_COUNT = 32;
/** Rows looked at for each new key, so that a crawl of ever new hosts forgets as fast as it meets them. */
const SWEEP_PER_KEY = 4;
/** Up to so many rows are looked at in one go, so that no call works for longer than 50 ms. */
const SWEEP_MOST = 4_096;
/** A table up to this size is looked at as a whole where somebody asks for all of it. */
const SWEEP_WHOLE = 65_536;
/** In a full table so many are looked at for each newcomer until all were. */
const LAP_MOST = 32_768;
/** In a full table so many are looked at for each newcomer before the first is known to be free: a permit may have come back. */
const SWEEP_FULL = 64;
/** A change of policy brings this part of all rows up to date, as far as one go allows; the others follow with the next ones, or when they are used. */
const PASS_PARTS = 8;
/** A `Map` has room for 2^24 keys, those that went included until half of it is free. */
const HOSTS_MOST = 8_388_608;

/** What a new era begins with: a `reset` of every key, or empty buckets. */
export type Forget = ResetWhat | "drain";

/** A policy and since when it is in force. */
interface Era {
  readonly policy: CompiledPolicy;
  readonly fromUs: number;
  /** It begins with a `reset` of every key. */
  readonly forget: Forget | undefined;
  /** The one that followed. Eras that no row is of any more go by themselves. */
  next: Era | undefined;
}

/** A rule of one era, and what follows from it. */
interface Profile {
  readonly rule: Rule;
  readonly era: Era;
  /** Gap and bucket alone decide: no window, quota or places, and answers teach nothing. */
  readonly isSimple: boolean;
  /** What a bucket may owe after a start, in unit-microseconds. */
  readonly owedMost: number;
  /** The rows that are read under it. */
  rowCount: number;
}

/**
 * Which row belongs to which key, and under which rule it was last read. Rows are made on first use and given back when they owe nothing.
 *
 * Hosts that owe nothing but have statistics stay while they are among the `keepStats` that became idle last.
 */
export class Keys {
  /** The row of each key: hosts by their keys, intents, scopes and `global` by names that begin with a line feed. */
  readonly rows = new Map<string, number>();
  readonly profiles: (Profile | undefined)[] = [];
  /** The latest start that was counted as lost. The row of a later one is its own. */
  lostUntilUs = Number.NEGATIVE_INFINITY;
  era: Era;
  readonly slab: Slab;
  readonly books: Books;
  readonly #most: number;
  /** The profiles of the era in force, and numbers that are free. */
  #numbers = new Map<Rule, number>();
  readonly #freeNumbers: number[] = [];
  #otherCount = 0;
  /** Idle hosts, the longest idle first, and how far they are gone: what comes before was folded. */
  readonly #idle = new Map<string, number>();
  #oldest = this.#idle.entries();
  #cursor = this.rows.entries();
  /** No key owes nothing before this instant, as far as is known; and how many rows are to be looked at before that is known. */
  #firstFreeUs = Number.NEGATIVE_INFINITY;
  #lapLeft = 0;
  #grants = 0;
  /** Rows of the request whose rows are being made: they are blank, and must not go. */
  readonly #fresh = new Set<number>();

  constructor(readonly engine: Engine) {
    const { policy } = engine.options;
    this.era = { policy, fromUs: Number.NEGATIVE_INFINITY, forget: undefined, next: undefined };
    this.slab = engine.slab;
    this.books = engine.books;
    this.#most = Math.min(engine.options.maxKeys, HOSTS_MOST);
  }

  get policy(): CompiledPolicy {
    return this.era.policy;
  }

  get hostCount(): number {
    return this.rows.size - this.#otherCount;
  }

  /** Every host with its row, in the order of first use. */
  *hosts(): Generator<[string, number], undefined> {
    for (const row of this.rows) if (!this.slab.hasFlag(row[1], IS_OTHER)) yield row;
  }

  /** The rule of a row that is up to date. */
  ruleOf(slot: number): Rule {
    return this.#profileOf(slot).rule;
  }

  /** How long the limits of a request let it wait. */
  maxWaitUs({ slots }: Need): number {
    let leastUs = Number.POSITIVE_INFINITY;
    for (let index = 0; index < slots.length; index++) leastUs = Math.min(leastUs, this.ruleOf(slots[index]).maxWaitUs);
    return leastUs;
  }

  #profileOf(slot: number): Profile {
    return this.profiles[this.slab.half(slot, PROFILE) & PROFILE_MASK] as Profile;
  }

  /** The last start at a row, whatever was reset since; minus Infinity before the first. */
  lastUs(slot: number): number {
    const { words, at } = this.slab.key(slot);
    return words[at + LAST_US];
  }

  /** Finds the rows a target needs, making those that do not exist. Scopes that the policy does not know are an error, or left out when `isLenient`. */
  need(target: ResolvedTarget, nowUs: number, isLenient = false): Need {
    try {
      return this.#need(target, nowUs, isLenient);
    } finally {
      this.#fresh.clear();
    }
  }

  #need(target: ResolvedTarget, nowUs: number, isLenient: boolean): Need {
    const { key, intent, scopes } = target;
    if (!this.rows.has(key)) this.sweep(nowUs, SWEEP_PER_KEY);
    const { policy } = this;
    const host = policy.hostRule(key);
    const isBound = host.rule.enabled && host.origin !== `hosts.${key}`;
    const slots = [this.#row(key, host.rule, isBound, nowUs)];
    const intentRule = intent === undefined ? undefined : host.intents.get(intent);
    const isBare = intentRule === undefined && scopes.length === 0;
    if (host.exempt || (isBare && host.scopes === undefined && policy.global === undefined)) {
      return { name: key, key, slots, scopeNames: HOST_ONLY, rowNames: [key], host, target };
    }
    const scopeNames = ["host"];
    const rowNames = [key];
    const add = (scopeName: string, rowName: string, rule: Rule, isOneOfMany = true): void => {
      slots.push(this.#row(rowName, rule, isOneOfMany, nowUs));
      scopeNames.push(scopeName);
      rowNames.push(rowName);
    };
    if (intent !== undefined && intentRule !== undefined)
      add("intent", `\nintent\n${key}\n${intent}`, intentRule, isBound);
    for (const scope of new Set([...(host.scopes ?? []), ...scopes])) {
      const rule = policy.scopeRule(scope);
      if (rule !== undefined) add(scope, `\nscope\n${scope}`, rule);
      else if (!isLenient)
        throw new TypeError(`target.scopes names "${scope}", which no entry of the policy's scopes matches.`);
    }
    if (policy.global !== undefined) add("global", GLOBAL_ROW, policy.global);
    const name = isBare ? key : [key, intentRule === undefined ? "" : intent, ...scopes].join("\n");
    return { name, key, slots, scopeNames, rowNames, host, target };
  }

  /** The row of a name, while it has one, brought up to date; undefined when it is gone. */
  rowOf(rowName: string, nowUs: number): number | undefined {
    const slot = this.rows.get(rowName);
    if (slot !== undefined) this.bring(slot, rowName, nowUs);
    return slot;
  }

  #row(rowName: string, rule: Rule, isBound: boolean, nowUs: number): number {
    const known = this.rows.get(rowName);
    if (known !== undefined) {
      if (this.slab.hasFlag(known, IS_IDLE)) this.#rouse(rowName, known);
      this.bring(known, rowName, nowUs);
      return known;
    }
    const isOther = rowName.startsWith("\n");
    if (isBound) this.#makeRoom(rowName, isOther, nowUs);
    const slot = this.slab.allocate();
    this.#setRule(slot, rowName, rule);
    this.slab.setFlag(slot, IS_OTHER, isOther);
    if (isOther) this.#otherCount += 1;
    else if (rowName.includes(":")) this.slab.setFlag(slot, HAS_PORT, true);
    this.rows.set(rowName, slot);
    this.#fresh.add(slot);
    if (this.era.forget === "drain") rateDrain(this.slab.key(slot), rule, nowUs);
    return slot;
  }

  /** Sees that one more key fits, or throws `CapacityError`. */
  #makeRoom(rowName: string, isOther: boolean, nowUs: number): void {
    const hasRoom = (): boolean =>
      (isOther ? this.#otherCount : this.hostCount) < this.#most || (!isOther && this.#foldOldest(nowUs));
    if (hasRoom()) return;
    if (this.#firstFreeUs <= nowUs) {
      this.#firstFreeUs = Number.POSITIVE_INFINITY;
      this.#lapLeft = this.rows.size;
    }
    // Before all rows were looked at, one that owes nothing may be among the others.
    const isLap = this.#lapLeft > 0;
    this.#lapLeft -= LAP_MOST;
    this.sweep(nowUs, isLap ? LAP_MOST : SWEEP_FULL);
    if (hasRoom()) return;
    const waitMs = this.#lapLeft > 0 ? 0 : (this.#firstFreeUs - nowUs) / 1000;
    throw new CapacityError(rowName.trim().replace("\n", " "), this.#most, waitMs);
  }

  /** Notes under which rule of the era in force a row was read. */
  #setRule(slot: number, rowName: string, rule: Rule): void {
    const { era, profiles } = this;
    let number = this.#numbers.get(rule);
    if (number === undefined) {
      number = this.#freeNumbers.pop() ?? profiles.length;
      const isAlone = rowName.startsWith("\n") || this.policy.hostRule(rowName).scopes === undefined;
      const isBare = rule.windows.length === 0 && rule.quota === undefined && !isFollowed(rule);
      const isSimple = isAlone && isBare && rule.adaptive === undefined;
      profiles[number] = { rule, era, isSimple, owedMost: rule.burst * rule.ratePerUs, rowCount: 0 };
      this.#numbers.set(rule, number);
    }
    this.slab.setProfile(slot, number);
    this.#profileOf(slot).rowCount += 1;
  }

  /** A row is not read under its rule any more. */
  #leaveRule(slot: number): void {
    const number = this.slab.half(slot, PROFILE) & PROFILE_MASK;
    const profile = this.#profileOf(slot);
    profile.rowCount -= 1;
    if (profile.rowCount > 0) return;
    this.profiles[number] = undefined;
    this.#freeNumbers.push(number);
    if (profile.era === this.era) this.#numbers.delete(profile.rule);
  }

  /** Puts another policy in force, or resets every key. Rows follow when they are used, or one after the other. */
  begin(policy: CompiledPolicy, forget: Forget | undefined, nowUs: number): void {
    const before = this.era;
    this.era = { policy, fromUs: nowUs, forget, next: undefined };
    before.next = this.era;
    this.#numbers = new Map();
    this.sweep(nowUs, Math.min(SWEEP_MOST, Math.ceil(this.rows.size / PASS_PARTS) + PASS_PARTS));
  }

  /** Reads a row under the policy in force, if it was not yet: under each policy since, from the instant on at which that began. */
  bring(slot: number, rowName: string, nowUs: number): void {
    const before = this.#profileOf(slot);
    let { rule } = before;
    if (before.era === this.era) return;
    for (let era = before.era.next; era !== undefined; era = era.next) {
      // A scope that the policy no longer knows keeps its rule until it owes nothing.
      const next = ruleIn(era.policy, rowName) ?? rule;
      adopt(this.slab.key(slot), rule, next, era.fromUs);
      rule = next;
      if (era.forget !== undefined) this.forgetRow(slot, rule, era.forget, era.fromUs, false);
    }
    this.#leaveRule(slot);
    this.#setRule(slot, rowName, rule);
    if (this.slab.hasFlag(slot, IS_IDLE) && owesUntil(this.slab.key(slot), rule, nowUs) > nowUs)
      this.#rouse(rowName, slot);
  }

  /** Forgets what `reset` says of one row; `isAlone`: of no other. */
  forgetRow(slot: number, rule: Rule, what: Forget, nowUs: number, isAlone: boolean): void {
    if (what === "drain") {
      rateDrain(this.slab.key(slot), rule, nowUs);
      return;
    }
    const key = this.slab.key(slot);
    this.loseLoose(key, slot, nowUs);
    if (what !== "stats") forgetPacing(key, nowUs, what === "all");
    if (what !== "pacing" && !this.slab.hasFlag(slot, IS_OTHER) && !this.books.isBlank(slot))
      this.books.clear(slot, inFlight(key, rule, nowUs), nowUs, isAlone);
  }

  /** A start was granted: now and then some more rows are looked at, so that what was lost is told of. */
  granted(nowUs: number): void {
    if ((++this.#grants & SWEEP_EVERY_MASK) === 0) this.sweep(nowUs, SWEEP_COUNT);
  }

  /** Looks at some more rows: brings them up to date, and lets those go that owe nothing. Not between finding a row and taking from it. */
  sweep(nowUs: number, count: number): void {
    for (let left = Math.min(count, this.rows.size + 1); left > 0; left--) {
      const next = this.#cursor.next();
      if (next.done === true) this.#cursor = this.rows.entries();
      else this.look(next.value[0], next.value[1], nowUs);
    }
  }

  /** Looks at rows in the order in which they became free, so that what is kept is what was promised; in a large table at some more. */
  sweepAll(nowUs: number): void {
    if (this.rows.size > SWEEP_WHOLE) {
      this.sweep(nowUs, SWEEP_MOST);
      return;
    }
    const rows = [...this.rows].sort((a, b) => this.lastUs(a[1]) - this.lastUs(b[1]));
    // Looking at one may let another one go.
    for (const [name, slot] of rows) if (this.rows.get(name) === slot) this.look(name, slot, nowUs);
  }

  /** Looks at one row, which may be gone afterwards. */
  look(rowName: string, slot: number, nowUs: number): void {
    this.bring(slot, rowName, nowUs);
    if (this.slab.hasFlag(slot, IS_IDLE)) return;
    this.engine.local.lapse(slot, nowUs);
    if (this.slab.hasFlag(slot, HAS_GATE) || this.#fresh.has(slot)) return;
    const untilUs = owesUntil(this.slab.key(slot), this.ruleOf(slot), nowUs);
    if (untilUs > nowUs) this.#firstFreeUs = Math.min(this.#firstFreeUs, untilUs);
    else if (!this.slab.hasFlag(slot, IS_OTHER)) this.#rest(rowName, slot, nowUs);
    else if (this.#otherCount > Math.min(OTHERS_KEPT, this.#most - 1) && rowName !== GLOBAL_ROW) {
      this.#otherCount -= 1;
      this.#release(rowName, slot);
    }
  }

  /** Counts starts in flight of a row as lost, once it has not started for `maxHold`. */
  loseLoose({ words, halves, at, rest }: Key, slot: number, nowUs: number): void {
    const lost = halves[2 * at + FLIGHT];
    const lastUs = rest?.looseUs ?? words[at + LAST_US];
    if (lost === 0 || lastUs + this.ruleOf(slot).maxHoldUs > nowUs) return;
    this.lostUntilUs = Math.max(this.lostUntilUs, lastUs);
    halves[2 * at + FLIGHT] = 0;
    if (!this.slab.hasFlag(slot, IS_OTHER)) this.books.lapsed(slot, lost);
  }

  /** Keeps of a host that owes nothing only its statistics, if it has any and there is room for them. */
  #rest(key: string, slot: number, nowUs: number): void {
    if (this.engine.options.keepStats === 0 || this.books.isBlank(slot)) {
      this.#drop(key, slot, this.lastUs(slot) !== Number.NEGATIVE_INFINITY);
      return;
    }
    const row = this.slab.key(slot);
    row.words[row.at + OWED] = 0;
    const kept = row.rest?.kept;
    this.slab.dropRest(slot);
    if (kept !== undefined) this.slab.key(slot).needRest().kept = kept;
    this.slab.setFlag(slot, IS_IDLE, true);
    this.#idle.set(key, slot);
    if (this.#idle.size > this.engine.options.keepStats) this.#foldOldest(nowUs);
  }

  /** Lets the host go that has been idle for longest; whether there is one. */
  #foldOldest(nowUs: number): boolean {
    for (let looked = 0; this.#idle.size > 0 && looked < SWEEP_MOST; looked++) {
      const next = this.#oldest.next();
      if (next.done === true) {
        this.#oldest = this.#idle.entries();
        continue;
      }
      const [key, slot] = next.value;
      // A new policy may make it owe again.
      this.bring(slot, key, nowUs);
      if (!this.slab.hasFlag(slot, IS_IDLE)) continue;
      this.#rouse(key, slot);
      this.#drop(key, slot, true);
      return true;
    }
    return false;
  }

  #rouse(key: string, slot: number): void {
    this.#idle.delete(key);
    this.slab.setFlag(slot, IS_IDLE, false);
  }

  #drop(key: string, slot: number, isFolded: boolean): void {
    if (isFolded) this.books.fold(slot);
    this.#release(key, slot);
    this.engine.dropped(key, isFolded);
  }

  #release(rowName: string, slot: number): void {
    this.rows.delete(rowName);
    this.#leaveRule(slot);
    this.slab.release(slot);
  }
}

/** The rule of a row in a policy; undefined where that has none. */
function ruleIn(policy: CompiledPolicy, rowName: string): Rule | undefined {
  if (!rowName.startsWith("\n")) return policy.hostRule(rowName).rule;
  const [, kind, first, second] = rowName.split("\n");
  if (kind === "global") return policy.global;
  return kind === "intent" ? policy.hostRule(first).intents.get(second) : policy.scopeRule(first);
}
