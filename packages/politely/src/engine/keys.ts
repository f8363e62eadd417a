import { adopt, forgetPacing } from "../core/change.js";
import { owesUntil } from "../core/decide.js";
import { ROW } from "../core/key.js";
import { inFlight, isFollowed } from "../core/limits/places.js";
import type { Rule } from "../core/rule.js";
import { CapacityError } from "../errors.js";
import type { CompiledPolicy, HostRule, ResolvedTarget } from "../policy/types.js";
import type { ResetWhat } from "../types.js";
import { HOST_ONLY, type Need } from "./arbiter.js";
import type { Books } from "./books.js";
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
/** In a full table so many are looked at for each newcomer, while nothing says that one of them is free. */
const SWEEP_FULL = 64;
/** A change of policy brings this part of all rows up to date; the others follow with the next ones, or when they are used. */
const PASS_PARTS = 8;
/** A `Map` has room for 2^24 keys, those that went included until half of it is free. */
const HOSTS_MOST = 8_388_608;

/** A policy and since when it is in force. */
interface Era {
  readonly number: number;
  readonly policy: CompiledPolicy;
  readonly fromUs: number;
  /** It begins with a `reset` of every key. */
  readonly forget: ResetWhat | undefined;
}

/** A rule of one era, and what follows from it. */
export interface Profile {
  readonly rule: Rule;
  readonly era: number;
  /** It is in force, and gap and bucket alone decide: no window, quota or places, and answers teach nothing. */
  isSimple: boolean;
  /** What a bucket may owe after a start, in unit-microseconds. */
  readonly owedMost: number;
}

/** The bounds of the table, and what happens when a row goes. */
export interface KeysOptions {
  readonly policy: CompiledPolicy;
  readonly maxKeys: number;
  readonly keepStats: number;
  /** Frees what was held at a row for longer than `maxHold`. */
  readonly lapse: (slot: number, nowUs: number) => void;
  /** A host's row was given back. */
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
  /** By number; those of eras that no row is of any more are gone. */
  readonly profiles: (Profile | undefined)[] = [];
  /** A permit came back, or a key was reset, since a full table was last looked at: some key may owe nothing now. */
  wasGivenBack = false;
  /** The latest start that was counted as lost. The row of a later one is its own. */
  lostUntilUs = Number.NEGATIVE_INFINITY;
  /** Some rule has learned from answers. */
  hasAdaptive = false;
  readonly #freeNumbers: number[] = [];
  readonly #numbers = new Map<Rule, number>();
  /** Policies that some row may not have been read under yet, the one in force last. */
  readonly #eras: Era[];
  /** Idle hosts, the longest idle first, and how far they are gone: what comes before was folded. */
  readonly #idle = new Map<string, number>();
  #oldest = this.#idle.entries();
  readonly #walk = this.#walkRows();
  #grants = 0;
  #clearedEra = 0;
  /** No key owes nothing before this instant, as far as is known. */
  #firstFreeUs = Number.NEGATIVE_INFINITY;
  readonly #maxHosts: number;

  constructor(
    readonly slab: Slab,
    readonly books: Books,
    readonly options: KeysOptions,
  ) {
    this.#eras = [{ number: 0, policy: options.policy, fromUs: Number.NEGATIVE_INFINITY, forget: undefined }];
    this.#maxHosts = Math.min(options.maxKeys, HOSTS_MOST);
  }

  get era(): Era {
    return this.#eras[this.#eras.length - 1];
  }

  get policy(): CompiledPolicy {
    return this.era.policy;
  }

  get size(): number {
    return this.hosts.size + this.others.size;
  }

  /** The profile of a row. */
  profileOf(slot: number): Profile {
    return this.profiles[this.slab.half(slot, PROFILE) & PROFILE_MASK] as Profile;
  }

  /** The rule of a row that is up to date. */
  ruleOf(slot: number): Rule {
    return this.profileOf(slot).rule;
  }

  /** The last start at a row, whatever was reset since; minus Infinity before the first. */
  lastUs(slot: number): number {
    const { words, at } = this.slab.key(slot);
    return words[at + LAST_US];
  }

  /** Finds the rows a target needs, making those that do not exist. Scopes that the policy does not know are an error, or left out when `isLenient`. */
  need(target: ResolvedTarget, nowUs: number, isLenient = false): Need {
    if (!this.hosts.has(target.key)) this.sweep(nowUs, SWEEP_PER_KEY);
    const { policy } = this;
    const { key, intent, scopes } = target;
    const host = policy.hostRule(key);
    const slots = [this.#host(key, host, nowUs)];
    const intentRule = intent === undefined ? undefined : host.intents.get(intent);
    const isBare = intentRule === undefined && scopes.length === 0;
    if (host.exempt || (isBare && host.scopes === undefined && policy.global === undefined)) {
      return { name: key, key, slots, scopeNames: HOST_ONLY, rowNames: [key], host, target };
    }
    const scopeNames = ["host"];
    const rowNames = [key];
    const add = (scopeName: string, rowName: string, rule: Rule): void => {
      slots.push(this.#other(rowName, rule, nowUs));
      scopeNames.push(scopeName);
      rowNames.push(rowName);
    };
    if (intent !== undefined && intentRule !== undefined) add("intent", `intent\n${key}\n${intent}`, intentRule);
    for (const scope of new Set([...(host.scopes ?? []), ...scopes])) {
      const rule = policy.scopeRule(scope);
      if (rule !== undefined) add(scope, `scope\n${scope}`, rule);
      else if (!isLenient)
        throw new TypeError(`target.scopes names "${scope}", which no entry of the policy's scopes matches.`);
    }
    if (policy.global !== undefined) add("global", GLOBAL_ROW, policy.global);
    const name = isBare ? key : [key, intentRule === undefined ? "" : intent, ...scopes].join("\n");
    return { name, key, slots, scopeNames, rowNames, host, target };
  }

  /** The row of a name, while it has one, brought up to date; undefined when it is gone. */
  rowOf(rowName: string, isHost: boolean, nowUs: number): number | undefined {
    const slot = (isHost ? this.hosts : this.others).get(rowName);
    if (slot !== undefined) this.bring(slot, rowName, isHost, nowUs);
    return slot;
  }

  /** The same for a key that has to be held although it is forgotten; undefined where the policy has no rule for it, or the table is full. */
  remake(rowName: string, isHost: boolean, nowUs: number): number | undefined {
    const known = this.rowOf(rowName, isHost, nowUs);
    if (known !== undefined || this.size >= this.#maxHosts) return known;
    if (isHost) return this.#host(rowName, this.policy.hostRule(rowName), nowUs);
    const rule = ruleIn(this.policy, rowName, false);
    return rule && this.#other(rowName, rule, nowUs);
  }

  /** Puts another policy in force, or resets every key. Rows follow when they are used, or one after the other. */
  begin(policy: CompiledPolicy, forget: ResetWhat | undefined, nowUs: number): void {
    const number = this.era.number + 1;
    if (forget !== undefined && forget !== "pacing") this.#clearedEra = number;
    this.wasGivenBack = true;
    this.#eras.push({ number, policy, fromUs: nowUs, forget });
    for (const profile of this.profiles) if (profile !== undefined) profile.isSimple = false;
    this.sweep(nowUs, Math.ceil(this.size / PASS_PARTS) + PASS_PARTS);
  }

  /** Reads a row under the policy in force, if it was not yet: under each policy since, from the instant on at which that began. */
  bring(slot: number, rowName: string, isHost: boolean, nowUs: number): void {
    let { rule, era } = this.profileOf(slot);
    const now = this.era.number;
    if (era === now) return;
    const first = this.#eras[0].number;
    for (; era < now; era++) {
      const { policy, fromUs, forget } = this.#eras[era + 1 - first];
      // A scope that the policy no longer knows keeps its rule until it owes nothing.
      const next = ruleIn(policy, rowName, isHost) ?? rule;
      adopt(this.slab.key(slot), rule, next, fromUs);
      rule = next;
      if (forget !== undefined) this.forgetRow(slot, rule, isHost, forget, fromUs);
    }
    this.slab.setProfile(slot, this.#numberOf(rule, rowName, isHost));
    if (this.slab.hasFlag(slot, IS_IDLE) && owesUntil(this.slab.key(slot), rule, nowUs) > nowUs)
      this.#rouse(rowName, slot);
  }

  /** Whether the counts of a row are from before the last `reset` of all statistics. */
  isUncleared(slot: number): boolean {
    return this.profileOf(slot).era < this.#clearedEra;
  }

  /** Forgets what `reset` says of one row. */
  forgetRow(slot: number, rule: Rule, isHost: boolean, what: ResetWhat, nowUs: number): void {
    this.wasGivenBack = true;
    this.loseLoose(slot, nowUs);
    const key = this.slab.key(slot);
    if (what !== "stats") forgetPacing(key, nowUs, what === "all");
    if (what !== "pacing" && isHost && !this.books.isBlank(slot))
      this.books.clear(slot, inFlight(key, rule, nowUs), nowUs);
  }

  /** A start was granted: now and then some more rows are looked at. */
  granted(nowUs: number): void {
    if ((++this.#grants & SWEEP_EVERY_MASK) === 0) this.sweep(nowUs, SWEEP_COUNT);
  }

  /** Looks at some more rows: brings them up to date, and lets those go that owe nothing. Not between finding a row and taking from it. */
  sweep(nowUs: number, count: number): void {
    for (let left = Math.min(count, this.size + 1); left > 0; left--) {
      const row = this.#walk.next().value;
      if (row !== undefined) this.look(row[0], row[1], !this.slab.hasFlag(row[1], IS_OTHER), nowUs);
    }
  }

  /** Looks at rows in the order in which they became free, up to 65,536 of them, so that what is kept is what was promised. */
  sweepAll(nowUs: number): void {
    if (this.size > SWEEP_MOST) {
      this.sweep(nowUs, SWEEP_MOST);
      return;
    }
    const rows = [...this.hosts].sort((a, b) => this.lastUs(a[1]) - this.lastUs(b[1]));
    // Looking at one may let another one go.
    for (const [name, slot] of rows) if (this.hosts.get(name) === slot) this.look(name, slot, true, nowUs);
    for (const [name, slot] of Array.from(this.others)) this.look(name, slot, false, nowUs);
  }

  /** Looks at one row, which may be gone afterwards. */
  look(rowName: string, slot: number, isHost: boolean, nowUs: number): void {
    this.bring(slot, rowName, isHost, nowUs);
    if (this.slab.hasFlag(slot, IS_IDLE)) return;
    this.options.lapse(slot, nowUs);
    if (this.slab.hasFlag(slot, HAS_GATE)) return;
    const untilUs = owesUntil(this.slab.key(slot), this.ruleOf(slot), nowUs);
    if (untilUs > nowUs) this.#firstFreeUs = Math.min(this.#firstFreeUs, untilUs);
    else if (isHost) this.#rest(rowName, slot, nowUs);
    else if (this.others.size > OTHERS_KEPT && rowName !== GLOBAL_ROW) {
      this.others.delete(rowName);
      this.slab.release(slot);
    }
  }

  /** Counts starts in flight of a row as lost, once it has not started for `maxHold`; whether there were any. */
  loseLoose(slot: number, nowUs: number): boolean {
    if (this.slab.half(slot, FLIGHT) === 0) return false;
    const lastUs = this.lastUs(slot);
    if (lastUs + this.ruleOf(slot).maxHoldUs > nowUs) return false;
    this.lostUntilUs = Math.max(this.lostUntilUs, lastUs);
    if (this.slab.hasFlag(slot, IS_OTHER)) this.slab.key(slot).halves[2 * this.slab.at + FLIGHT] = 0;
    else this.books.loseLoose(slot);
    return true;
  }

  #host(key: string, host: HostRule, nowUs: number): number {
    const known = this.hosts.get(key);
    if (known !== undefined) {
      if (this.slab.hasFlag(known, IS_IDLE)) this.#rouse(key, known);
      this.bring(known, key, true, nowUs);
      return known;
    }
    const isBound = host.rule.enabled && host.origin !== `hosts.${key}`;
    this.#makeRoom(key, isBound ? this.#maxHosts : Number.POSITIVE_INFINITY, this.hosts, nowUs);
    const slot = this.slab.allocate();
    this.slab.setProfile(slot, this.#numberOf(host.rule, key, true));
    this.hosts.set(key, slot);
    return slot;
  }

  #other(rowName: string, rule: Rule, nowUs: number): number {
    const known = this.rowOf(rowName, false, nowUs);
    if (known !== undefined) return known;
    this.#makeRoom(rowName.replace("\n", " "), this.options.maxKeys, this.others, nowUs);
    const slot = this.slab.allocate();
    this.slab.setProfile(slot, this.#numberOf(rule, rowName, false));
    this.slab.setFlag(slot, IS_OTHER, true);
    this.others.set(rowName, slot);
    return slot;
  }

  /** Sees that one more key fits, or throws `CapacityError`. */
  #makeRoom(key: string, most: number, table: ReadonlyMap<string, number>, nowUs: number): void {
    if (table.size < most || (table === this.hosts && this.#foldOldest(nowUs))) return;
    const isDue = this.#firstFreeUs <= nowUs;
    if (isDue) this.#firstFreeUs = Number.POSITIVE_INFINITY;
    if (isDue || this.wasGivenBack) this.sweep(nowUs, isDue ? SWEEP_MOST : SWEEP_FULL);
    this.wasGivenBack &&= this.size > SWEEP_FULL;
    if (table.size < most || (table === this.hosts && this.#foldOldest(nowUs))) return;
    throw new CapacityError(key, table.size, (this.#firstFreeUs - nowUs) / 1000);
  }

  /** The number of a rule's profile in the era in force. */
  #numberOf(rule: Rule, rowName: string, isHost: boolean): number {
    const era = this.era.number;
    const known = this.#numbers.get(rule);
    if (known !== undefined && this.profiles[known]?.era === era) return known;
    const number = this.#freeNumbers.pop() ?? this.profiles.length;
    const isAlone = !isHost || this.policy.hostRule(rowName).scopes === undefined;
    const isBare = rule.windows.length === 0 && rule.quota === undefined && !isFollowed(rule);
    const isSimple = isAlone && isBare && rule.adaptive === undefined;
    this.profiles[number] = { rule, era, isSimple, owedMost: rule.burst * rule.ratePerUs };
    if (rule.adaptive !== undefined) this.hasAdaptive = true;
    this.#numbers.set(rule, number);
    return number;
  }

  /** All rows, again and again; undefined after each pass. */
  *#walkRows(): Generator<[string, number] | undefined, undefined> {
    for (;;) {
      const passEra = this.era.number;
      yield* this.hosts;
      yield* this.others;
      // Every row was brought up to the policy that was in force when the pass began.
      while (this.#eras[0].number < passEra) this.#eras.shift();
      this.profiles.forEach((profile, number) => {
        if (profile === undefined || profile.era >= passEra) return;
        if (this.#numbers.get(profile.rule) === number) this.#numbers.delete(profile.rule);
        this.profiles[number] = undefined;
        this.#freeNumbers.push(number);
      });
      yield undefined;
    }
  }

  /** Keeps of a host that owes nothing only its statistics, if it has any and there is room for them. */
  #rest(key: string, slot: number, nowUs: number): void {
    if (this.options.keepStats === 0 || this.books.isBlank(slot)) {
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
    if (this.#idle.size > this.options.keepStats) this.#foldOldest(nowUs);
  }

  /** Lets the host go that has been idle for longest. */
  #foldOldest(nowUs: number): boolean {
    while (this.#idle.size > 0) {
      const next = this.#oldest.next();
      if (next.done === true) {
        this.#oldest = this.#idle.entries();
        continue;
      }
      const [key, slot] = next.value;
      // A new policy may make it owe again.
      this.bring(slot, key, true, nowUs);
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
    this.hosts.delete(key);
    this.slab.release(slot);
    this.options.onDrop(key, isFolded);
  }
}

/** The rule of a row in a policy; undefined where that has none. */
function ruleIn(policy: CompiledPolicy, rowName: string, isHost: boolean): Rule | undefined {
  if (isHost) return policy.hostRule(rowName).rule;
  if (rowName === GLOBAL_ROW) return policy.global;
  const [kind, first, second] = rowName.split("\n");
  return kind === "intent" ? policy.hostRule(first).intents.get(second) : policy.scopeRule(first);
}
