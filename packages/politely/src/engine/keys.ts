import { adopt, forgetPacing } from "../core/change.js";
import { owesUntil } from "../core/decide.js";
import { ROW } from "../core/key.js";
import { inFlight } from "../core/limits/places.js";
import { windowForget } from "../core/limits/window.js";
import type { Rule } from "../core/rule.js";
import { CapacityError } from "../errors.js";
import type { CompiledPolicy, HostRule, ResolvedTarget } from "../policy/types.js";
import type { ResetWhat } from "../types.js";
import type { Books } from "./books.js";
import { type InLine, Line } from "./line.js";
import { HOST_ONLY, intentRow, type Need, scopeRow } from "./need.js";
import { type Era, type Profile, Profiles } from "./profile.js";
import { HAS_GATE, IS_IDLE, IS_OTHER, PROFILE_MASK, type Slab } from "./slab.js";

const { FLIGHT, LAST_US, OWED, PROFILE } = ROW;

/** The row of what is over everything. */
const GLOBAL_ROW = "global";

/** Rows of intents and scopes that stay when they owe nothing, so that a rule that comes later finds their last start. */
const OTHERS_KEPT = 10_000;

/** Grants between two looks at rows that may owe nothing any more, and how many are looked at then. */
const SWEEP_EVERY_MASK = 1023;
const SWEEP_COUNT = 32;
/** Rows looked at for each new key, so that a crawl of ever new hosts forgets as fast as it meets them. */
const SWEEP_PER_KEY = 4;
/** Up to so many rows are looked at in one go: some 20 ms. */
const SWEEP_MOST = 65_536;
/** Of a full table with up to so many rows it is known when the first owes nothing; with more of them, some are looked at every 50 ms. */
const SMALL_TABLE = 4_096;
const LOOK_AGAIN_US = 50_000;

/** A `Map` has room for 2^24 keys, those that went included until it is tidied, which it is when they are half of it. With more hosts than this it could be full. */
const HOSTS_MOST = 8_388_608;
/** A table of hosts below this fits into the caches of a processor. Seven eighths of a power of two, which the capacity of a `Map` is. */
const FIRST_CROWDED = 57_344;
/** A change of policy brings this part of all rows up to date; the others follow with the next ones, or when they are used. */
const PASS_PARTS = 8;

/** The bounds of the table, and what happens when a row goes. */
export interface KeysOptions {
  readonly policy: CompiledPolicy;
  readonly maxKeys: number;
  readonly keepStats: number;
  /** A row was given back. */
  readonly onDrop: (key: string, wasFolded: boolean) => void;
}

/**
 * Which row belongs to which key, and under which rule it was last read. Rows are made on first use and given back when they owe nothing.
 *
 * Hosts that owe nothing but have statistics stay while they are among the `keepStats` that became idle last.
 */
export class Keys {
  readonly hosts = new Map<string, number>();
  /** Intents, scopes and `global`, by the names of their rows. */
  readonly others = new Map<string, number>();
  readonly profiles = new Profiles();
  /** Policies that some row may not have been read under yet, the one in force last. */
  readonly #eras: Era[];
  /** Idle hosts, the longest idle first. Those that were used since are passed over. */
  readonly #idle = new Line<IdleHost>();
  readonly #idleBySlot = new Map<number, IdleHost>();
  #cursor: Iterator<[string, number]> | undefined;
  #isAtHosts = true;
  #passEra = 0;
  #clearedEra = 0;
  #grants = 0;
  #lookAgainUs = Number.NEGATIVE_INFINITY;
  #firstFreeUs = Number.NEGATIVE_INFINITY;
  /** A permit came back, or a key was reset, since a full table was last looked at: some key may owe nothing now. */
  wasGivenBack = false;
  readonly #maxHosts: number;
  /** So many hosts fill seven eighths of their table. */
  #crowdedAt: number;

  constructor(
    readonly slab: Slab,
    readonly books: Books,
    readonly options: KeysOptions,
  ) {
    this.#eras = [{ number: 0, policy: options.policy, fromUs: Number.NEGATIVE_INFINITY, forget: undefined }];
    this.#maxHosts = Math.min(options.maxKeys, HOSTS_MOST);
    this.#crowdedAt = options.keepStats > 0 ? FIRST_CROWDED : Number.POSITIVE_INFINITY;
  }

  get era(): Era {
    return this.#eras[this.#eras.length - 1];
  }

  get policy(): CompiledPolicy {
    return this.era.policy;
  }

  /** The profile of a row that is up to date. */
  profileOf(slot: number): Profile {
    return this.profiles.at(this.slab.half(slot, PROFILE) & PROFILE_MASK);
  }

  /** Finds the rows a target needs, making those that do not exist. Scopes that the policy does not know are an error, or left out when `isLenient`. */
  need(resolved: ResolvedTarget, nowUs: number, isLenient = false): Need {
    if (!this.hosts.has(resolved.key)) this.sweep(nowUs, SWEEP_PER_KEY);
    if (this.others.size >= this.options.maxKeys) this.#sweepForRoom(nowUs);
    const { policy } = this;
    const { key, intent, scopes } = resolved;
    const host = policy.hostRule(key);
    const slot = this.#host(key, host, nowUs);
    const intentRule = intent === undefined ? undefined : host.intents.get(intent);
    const isAlone = intentRule === undefined && scopes.length === 0 && host.scopes === undefined;
    if (host.exempt || (isAlone && policy.global === undefined)) {
      const rowNames = [key];
      return { name: key, key, slots: [slot], scopeNames: HOST_ONLY, rowNames, host, target: resolved };
    }
    const slots = [slot];
    const scopeNames = ["host"];
    const rowNames = [key];
    const add = (scopeName: string, rowName: string, rule: Rule): void => {
      slots.push(this.#other(rowName, rule, nowUs));
      scopeNames.push(scopeName);
      rowNames.push(rowName);
    };
    if (intent !== undefined && intentRule !== undefined) add("intent", intentRow(key, intent), intentRule);
    for (const scope of host.scopes === undefined ? scopes : new Set([...host.scopes, ...scopes])) {
      const rule = policy.scopeRule(scope);
      if (rule !== undefined) add(scope, scopeRow(scope), rule);
      else if (!isLenient)
        throw new TypeError(`target.scopes names "${scope}", which no entry of the policy's scopes matches.`);
    }
    if (policy.global !== undefined) add("global", GLOBAL_ROW, policy.global);
    const isPlain = intentRule === undefined && scopes.length === 0;
    const name = isPlain ? key : [key, intentRule === undefined ? "" : intent, ...scopes].join("\n");
    return { name, key, slots, scopeNames, rowNames, host, target: resolved };
  }

  /** The row of a name, while it has one, brought up to date; undefined when it is gone. */
  rowOf(rowName: string, isHost: boolean, nowUs: number): number | undefined {
    const slot = (isHost ? this.hosts : this.others).get(rowName);
    if (slot !== undefined) this.bring(slot, rowName, isHost, nowUs);
    return slot;
  }

  /** The same for a key that has to be held although it is forgotten; undefined where the policy has no rule for it, or the table is full. */
  remake(rowName: string, isHost: boolean, nowUs: number): number | undefined {
    if (isHost)
      return this.hosts.size < this.#maxHosts ? this.#host(rowName, this.policy.hostRule(rowName), nowUs) : undefined;
    const rule = ruleOf(this.policy, rowName, false);
    return rule !== undefined && this.others.size < this.options.maxKeys
      ? this.#other(rowName, rule, nowUs)
      : undefined;
  }

  /** Puts another policy in force. Rows follow when they are used, or one after the other. */
  configure(policy: CompiledPolicy, nowUs: number): void {
    this.#begin({ number: this.era.number + 1, policy, fromUs: nowUs, forget: undefined });
  }

  /** Resets every key. Rows follow as after a change of policy. */
  forgetAll(what: ResetWhat, nowUs: number): void {
    const number = this.era.number + 1;
    if (what !== "pacing") this.#clearedEra = number;
    this.#begin({ number, policy: this.policy, fromUs: nowUs, forget: what });
  }

  #begin(era: Era): void {
    this.wasGivenBack = true;
    this.#eras.push(era);
    this.sweep(era.fromUs, Math.ceil((this.hosts.size + this.others.size) / PASS_PARTS) + PASS_PARTS);
  }

  /** Reads a row under the policy in force, if it was not yet. */
  bring(slot: number, rowName: string, isHost: boolean, nowUs: number): void {
    let { rule, era } = this.profileOf(slot);
    const now = this.era.number;
    if (era === now) return;
    const first = this.#eras[0].number;
    const key = this.slab.key(slot);
    for (; era < now; era++) {
      const { policy, fromUs, forget } = this.#eras[era + 1 - first];
      // A scope that the policy no longer knows keeps its rule until it owes nothing.
      const next = ruleOf(policy, rowName, isHost) ?? rule;
      adopt(key, rule, next, fromUs);
      rule = next;
      if (forget !== undefined) this.forgetRow(slot, rule, isHost, forget, fromUs);
    }
    key.noteLog();
    this.slab.setProfile(slot, this.#profile(rule, rowName, isHost));
    if (this.slab.hasFlag(slot, IS_IDLE) && owesUntil(this.slab.key(slot), rule, nowUs) > nowUs) this.#rouse(slot);
  }

  /** Whether the counts of a row are from before the last `reset` of all statistics. */
  isUncleared(slot: number): boolean {
    return this.profileOf(slot).era < this.#clearedEra;
  }

  /** Forgets what `reset` says of one row. */
  forgetRow(slot: number, rule: Rule, isHost: boolean, what: ResetWhat, nowUs: number): void {
    this.wasGivenBack = true;
    const key = this.slab.key(slot);
    if (what !== "stats") forgetPacing(key, nowUs, what === "all");
    key.noteLog();
    if (what !== "pacing" && isHost && !this.books.isBlank(slot))
      this.books.clear(slot, inFlight(key, rule, nowUs), nowUs);
  }

  /** A start was granted: now and then some more rows are looked at. */
  granted(nowUs: number): void {
    if ((++this.#grants & SWEEP_EVERY_MASK) === 0) this.sweep(nowUs, SWEEP_COUNT);
  }

  /** Looks at some more rows: brings them up to date, and lets those go that owe nothing. Not between finding a row and taking from it. */
  sweep(nowUs: number, count: number): void {
    for (let left = Math.min(count, this.hosts.size + this.others.size + 2); left > 0; left--) {
      this.#cursor ??= (this.#isAtHosts ? this.hosts : this.others).entries();
      const next = this.#cursor.next();
      if (next.done !== true) {
        this.look(next.value[0], next.value[1], this.#isAtHosts, nowUs);
        continue;
      }
      this.#cursor = undefined;
      this.#isAtHosts = !this.#isAtHosts;
      if (this.#isAtHosts) this.#passed();
    }
  }

  /** Looks at rows in the order in which they became free, up to 65,536 of them, so that what is kept is what was promised. */
  sweepAll(nowUs: number): void {
    const most = this.hosts.size + this.others.size;
    if (most > SWEEP_MOST) {
      this.sweep(nowUs, SWEEP_MOST);
      return;
    }
    const rows = [...this.hosts].sort((a, b) => this.books.lastUs(a[1]) - this.books.lastUs(b[1]));
    // Looking at one may let another one go.
    for (const [name, slot] of rows) if (this.hosts.get(name) === slot) this.look(name, slot, true, nowUs);
    for (const [name, slot] of Array.from(this.others)) this.look(name, slot, false, nowUs);
  }

  /** Looks at one row, which may be gone afterwards. */
  look(rowName: string, slot: number, isHost: boolean, nowUs: number): void {
    this.bring(slot, rowName, isHost, nowUs);
    if (this.slab.hasFlag(slot, HAS_GATE | IS_IDLE)) return;
    const { rule } = this.profileOf(slot);
    const untilUs = owesUntil(this.slab.key(slot), rule, nowUs);
    if (untilUs > nowUs) {
      this.#firstFreeUs = Math.min(this.#firstFreeUs, untilUs);
      return;
    }
    this.lapseLoose(slot, nowUs);
    if (isHost) this.#settle(rowName, slot, nowUs);
    else if (this.others.size > OTHERS_KEPT && rowName !== GLOBAL_ROW) {
      this.others.delete(rowName);
      this.#release(slot);
    }
  }

  /** Counts starts in flight of a row as lost, once it has not started for `maxHold`. */
  lapseLoose(slot: number, nowUs: number): void {
    const count = this.slab.half(slot, FLIGHT);
    if (count === 0) return;
    const { maxHoldUs } = this.profileOf(slot);
    const key = this.slab.key(slot);
    if (key.words[key.at + LAST_US] + maxHoldUs > nowUs) return;
    const lastUs = this.books.lastUs(slot);
    if (lastUs + maxHoldUs > nowUs) return;
    key.halves[2 * key.at + FLIGHT] = 0;
    key.needRest().lapsedUntilUs = lastUs;
    if (this.slab.hasFlag(slot, IS_OTHER)) return;
    this.books.lapsed(slot, count);
    this.books.flying -= count;
  }

  #host(key: string, host: HostRule, nowUs: number): number {
    const known = this.hosts.get(key);
    if (known !== undefined) {
      if (this.slab.hasFlag(known, IS_IDLE)) this.#rouse(known);
      this.bring(known, key, true, nowUs);
      return known;
    }
    if (this.hosts.size >= this.#maxHosts && !this.#foldOldest(nowUs)) this.#sweepForRoom(nowUs);
    const isBound = host.rule.enabled && host.origin !== `hosts.${key}`;
    if (isBound && this.hosts.size >= this.#maxHosts && !this.#foldOldest(nowUs)) {
      throw new CapacityError(key, this.hosts.size, (this.#firstFreeUs - nowUs) / 1000);
    }
    const slot = this.slab.allocate();
    this.slab.setProfile(slot, this.#profile(host.rule, key, true));
    this.hosts.set(key, slot);
    if (this.hosts.size >= this.#crowdedAt) this.#widen();
    return slot;
  }

  #other(rowName: string, rule: Rule, nowUs: number): number {
    const known = this.others.get(rowName);
    if (known !== undefined) {
      this.bring(known, rowName, false, nowUs);
      return known;
    }
    if (this.others.size >= this.options.maxKeys) {
      throw new CapacityError(rowName.replace("\n", " "), this.others.size, (this.#firstFreeUs - nowUs) / 1000);
    }
    const slot = this.slab.allocate();
    this.slab.setProfile(slot, this.profiles.numberOf(rule, this.era.number, true));
    this.slab.setFlag(slot, IS_OTHER, true);
    this.others.set(rowName, slot);
    return slot;
  }

  #profile(rule: Rule, rowName: string, isHost: boolean): number {
    const isAlone = !isHost || this.policy.hostRule(rowName).scopes === undefined;
    return this.profiles.numberOf(rule, this.era.number, isAlone);
  }

  /** Every row was brought up to the policy that was in force when the pass began. */
  #passed(): void {
    while (this.#eras.length > 1 && this.#eras[0].number < this.#passEra) this.#eras.shift();
    this.profiles.dropBefore(this.#passEra);
    this.#passEra = this.era.number;
  }

  #sweepForRoom(nowUs: number): void {
    const isSmall = this.hosts.size + this.others.size <= SMALL_TABLE;
    // Debts only grow, but for what permits give back.
    if (nowUs < this.#firstFreeUs && (isSmall ? !this.wasGivenBack : nowUs < this.#lookAgainUs)) return;
    this.#lookAgainUs = nowUs + LOOK_AGAIN_US;
    this.wasGivenBack = false;
    if (this.#firstFreeUs <= nowUs || isSmall) this.#firstFreeUs = Number.POSITIVE_INFINITY;
    this.sweep(nowUs, isSmall ? 2 * SMALL_TABLE : SWEEP_MOST);
  }

  #settle(key: string, slot: number, nowUs: number): void {
    if (this.options.keepStats === 0 || this.books.isBlank(slot)) {
      this.#drop(key, slot, this.books.lastUs(slot) !== Number.NEGATIVE_INFINITY);
      return;
    }
    const row = this.slab.key(slot);
    windowForget(row);
    row.noteLog();
    row.words[row.at + OWED] = 0;
    const { rest } = row;
    if (rest !== undefined) {
      const { lapsed, lapsedUntilUs, carried, lastUs, wasReset } = rest;
      this.slab.dropRest(slot);
      const isWorthKeeping = lapsed > 0 || carried > 0 || wasReset || lastUs > row.words[row.at + LAST_US];
      if (isWorthKeeping) Object.assign(row.needRest(), { lapsed, lapsedUntilUs, carried, lastUs, wasReset });
    }
    this.slab.setFlag(slot, IS_IDLE, true);
    const idle: IdleHost = { place: -1, key, slot };
    this.#idle.push(idle);
    this.#idleBySlot.set(slot, idle);
    if (this.#idleBySlot.size > this.options.keepStats) this.#foldOldest(nowUs);
  }

  /** Lets the host go that has been idle for longest. */
  #foldOldest(nowUs: number): boolean {
    for (let oldest = this.#idle.first; oldest !== undefined; oldest = this.#idle.first) {
      const { key, slot } = oldest;
      // A new policy may make it owe again.
      this.bring(slot, key, true, nowUs);
      if (!this.slab.hasFlag(slot, IS_IDLE)) continue;
      this.#rouse(slot);
      this.#drop(key, slot, true);
      return true;
    }
    return false;
  }

  #rouse(slot: number): void {
    const idle = this.#idleBySlot.get(slot);
    if (idle !== undefined) this.#idle.remove(idle);
    this.#idleBySlot.delete(slot);
    this.slab.setFlag(slot, IS_IDLE, false);
  }

  #drop(key: string, slot: number, isFolded: boolean): void {
    if (isFolded) this.books.fold(slot);
    this.hosts.delete(key);
    // A quarter full, a Map becomes half as large.
    if (this.hosts.size < (this.#crowdedAt * 2) / 7 && this.#crowdedAt > FIRST_CROWDED) this.#crowdedAt /= 2;
    this.#release(slot);
    this.options.onDrop(key, isFolded);
  }

  #release(slot: number): void {
    windowForget(this.slab.key(slot));
    this.slab.release(slot);
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
}

/** A host that owes nothing, in the order in which they became idle. */
interface IdleHost extends InLine {
  readonly key: string;
  readonly slot: number;
}

/** The rule of a row in a policy; undefined where that has none. */
function ruleOf(policy: CompiledPolicy, rowName: string, isHost: boolean): Rule | undefined {
  if (isHost) return policy.hostRule(rowName).rule;
  if (rowName === GLOBAL_ROW) return policy.global;
  const [kind, first, second] = rowName.split("\n");
  return kind === "intent" ? policy.hostRule(first).intents.get(second) : policy.scopeRule(first);
}
