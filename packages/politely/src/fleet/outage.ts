import { answerOf } from "../core/answer.js";
import { ONE, ROW } from "../core/key.js";
import { isFollowed } from "../core/limits/places.js";
import { owedAt } from "../core/limits/rate.js";
import { windowGrainUs } from "../core/limits/window.js";
import type { Rule } from "../core/rule.js";
import type { Need } from "../engine/arbiter.js";
import type { Engine } from "../engine/engine.js";
import type { HeldPermit } from "../engine/permit.js";
import type { CompiledPolicy, HostRule } from "../policy/types.js";
import { placeName } from "../stores/operations.js";
import type { Link, Send } from "./link.js";
import type { Places } from "./places.js";
import { asPlain, type SharedStart, storeName } from "./sharedStart.js";

const { OWED, SEEN_US } = ROW;
/** Processes assumed where the store was never met. */
const UNKNOWN_MEMBERS = 10;
/** The most members seen within one to two of these counts. */
const SEEN_LONG_US = 300_000_000;
/** Starts of one key that are remembered each by itself; beyond, those next to each other count as of the later. */
const STARTS_MOST = 256;
/** Keys that starts are remembered of. */
const KEYS_MOST = 100_000;

/** Tries whether a store can write. */
const TRIAL = { kind: "renew", places: [[]], completeBefore: 0, gone: [], isLeaving: false } as const;

/** Starts made at one key while the store was away. */
interface Missed {
  /** The whole limit. */
  readonly rule: Rule;
  /** Instants of this process's clock, oldest first; how many there were, and what they cost together. */
  readonly starts: { readonly atUs: number; count: number; units: number }[];
}

/**
 * What holds while the store is away, with `outage: "share"`: the limits divided by the number of processes, kept in this process's own rows.
 *
 * They begin with empty buckets, and with windows that know what this process has started. What is started meanwhile is told to the store when it is back.
 */
export class Outage {
  /** By the name of the row. */
  #missed = new Map<string, Missed>();
  /** What is being told, in order, each with the number it is told by: what was told before may have been heard. */
  readonly #telling: { readonly rowName: string; readonly missed: Missed; readonly number: number }[] = [];
  /** The policy that is divided; undefined while the store is there. */
  #whole: CompiledPolicy | undefined = undefined;
  #engine: Engine | undefined = undefined;
  readonly #starts = new WeakMap<HeldPermit, SharedStart>();
  #count = 0;
  #members = 0;
  #membersBefore = 0;
  #membersUs = Number.NEGATIVE_INFINITY;

  constructor(
    readonly link: Link,
    readonly places: Places,
    readonly options: { readonly process: string; readonly name: string; readonly storeName: string },
  ) {}

  /** The engine whose rows are used. Called once. */
  attach(engine: Engine): void {
    this.#engine = engine;
  }

  /** By how many the limits are divided: the most processes seen in the last five to ten minutes. */
  get members(): number {
    const most = Math.max(this.#members, this.#membersBefore);
    return most === 0 ? UNKNOWN_MEMBERS : most;
  }

  /** Whether the store has ever said how many there are. */
  get isKnown(): boolean {
    return this.#members + this.#membersBefore > 0;
  }

  sawMembers(count: number): void {
    const nowUs = this.#engine?.nowUs() ?? 0;
    if (nowUs - this.#membersUs > SEEN_LONG_US) {
      this.#membersBefore = this.#members;
      this.#members = 0;
      this.#membersUs = nowUs;
    }
    this.#members = Math.max(this.#members, count);
  }

  /** Divides the limits. */
  begin(): void {
    if (this.#engine === undefined || this.#whole !== undefined) return;
    this.#whole = this.#engine.keys.policy;
    this.#engine.begin(this.#divided(this.#whole), "drain");
  }

  /** Puts the whole limits in force again. */
  end(): void {
    const whole = this.#whole;
    this.#whole = undefined;
    if (whole !== undefined) this.#engine?.begin(whole, undefined);
  }

  /** What is in force once a policy is to be: while the store is away, this process's part. */
  partOf(policy: CompiledPolicy): CompiledPolicy {
    if (this.#whole === undefined) return policy;
    this.#whole = policy;
    return this.#divided(policy);
  }

  /** Remembers a start that the store does not know. */
  note(permit: HeldPermit, nowUs: number): void {
    const keys: string[] = [];
    const rules: Rule[] = [];
    const slots: number[] = [];
    const { need, taken } = permit.grant;
    for (const [index, slot] of need.slots.entries()) {
      const rowName = need.rowNames[index];
      const part = this.#engine?.keys.ruleOf(slot);
      if (part === undefined || !part.enabled) continue;
      keys.push(storeName(this.options.name, rowName));
      slots.push(slot);
      rules.push(this.#miss(rowName, part, nowUs, Math.max(taken[index].cost.window, taken[index].cost.quota)));
    }
    if (!rules.some(isFollowed)) return;
    const startedUs = nowUs + this.link.offsetUs;
    const place = placeName(`${this.options.process}.away`, 0, ++this.#count);
    const parts = keys.map(() => ({ previousUs: Number.NEGATIVE_INFINITY, unitsAfter: 0, period: -1 }));
    const about = { keys, rules, slots, costs: keys.map(() => ONE), parts };
    const start = { ...about, startedUs, grantedUs: startedUs, token: 0, place, isFollowed: true };
    this.#starts.set(permit, start);
    this.places.add(start);
  }

  /** The same for one that was made without asking. */
  noteRecorded({ rowNames, slots }: Need, startedUs: number): void {
    for (const [index, rowName] of rowNames.entries()) {
      const part = this.#engine?.keys.ruleOf(slots[index]);
      if (part?.enabled === true) this.#miss(rowName, part, startedUs, 1);
    }
  }

  /** Remembers that this process was answered something at a key that the store has not heard of. */
  noteHeld(permit: HeldPermit, scopeName: string): void {
    const { slots, rowNames, scopeNames } = permit.grant.need;
    const index = Math.max(0, scopeNames.indexOf(scopeName));
    const rule = this.#engine?.keys.ruleOf(slots[index]);
    if (rule?.enabled === true) this.#at(rowNames[index], rule);
  }

  #miss(rowName: string, part: Rule, startedUs: number, units: number): Rule {
    const missed = this.#at(rowName, part);
    if (missed !== undefined) addStart(missed.starts, startedUs, units);
    return part.whole ?? part;
  }

  /** What the store has to be told of a key; undefined where there are too many. */
  #at(rowName: string, part: Rule): Missed | undefined {
    const known = this.#missed.get(rowName);
    if (known !== undefined || this.#missed.size >= KEYS_MOST) return known;
    const missed: Missed = { rule: part.whole ?? part, starts: [] };
    this.#missed.set(rowName, missed);
    return missed;
  }

  /** A permit of the time when the store was away is back. */
  ended(permit: HeldPermit): void {
    const start = this.#starts.get(permit);
    if (start === undefined) return;
    this.places.remove(start);
    this.places.doubt(start.keys, start.rules);
    // If the store has heard of its place, it hears that it is free.
    if (this.link.failure === undefined) void this.places.renewAll().catch(() => undefined);
  }

  /** Tells a store that is back what it has missed: which places are taken, what was started, and what is held. */
  async tell(send: Send): Promise<void> {
    const rules = this.#engine === undefined ? [] : [this.#engine.keys.policy.overflow.rule];
    await send(["trial"], { ...TRIAL, rules, process: this.options.process });
    await this.places.renewAll(send);
    for (const [rowName, missed] of this.#missed) {
      this.#missed.delete(rowName);
      this.#telling.push({ rowName, missed, number: this.link.newNumber() });
    }
    for (let one = this.#telling[0]; one !== undefined; one = this.#telling[0]) {
      const { rowName, missed, number } = one;
      await this.#tellOne((keys, operation) => send(keys, operation, number), rowName, missed);
      this.#telling.shift();
    }
    if (this.#missed.size > 0) await this.tell(send);
  }

  async #tellOne(send: Send, rowName: string, { rule, starts }: Missed): Promise<void> {
    const { keys, slab } = this.#engine ?? {};
    const nowUs = this.#engine?.nowUs() ?? 0;
    const slot = keys?.rowOf(rowName, nowUs);
    if (keys === undefined || slab === undefined) return;
    const key = slot === undefined ? undefined : slab.key(slot);
    // What this process's part of the bucket still owes. Together the processes owe what the whole does.
    const part = slot === undefined ? rule : keys.ruleOf(slot);
    const owed =
      key === undefined ? 0 : owedAt(part.rateCount, key.words[key.at + OWED], key.words[key.at + SEEN_US], nowUs);
    const debt = part.rateCount === 0 ? 0 : Math.ceil(owed / part.ratePerUs);
    const incident = key?.rest?.holds?.incident;
    const isHeld = incident !== undefined && incident.untilUs > nowUs;
    const answer = isHeld ? answerOf("rate_limited", incident.untilUs - nowUs, incident.because) : undefined;
    const agesUs = starts.map(({ atUs }) => nowUs - atUs);
    const counts = starts.map(({ count }) => count);
    const units = starts.map((one) => one.units);
    const asker = `${this.options.process}.away`;
    const told = { asker, agesUs, counts, units, owed: [debt], answer, meant: 0, random: 0 };
    await send([storeName(this.options.name, rowName)], { kind: "record", keys: asPlain([rule]), ...told });
  }

  /** A policy of which this process has one part. */
  #divided(policy: CompiledPolicy): CompiledPolicy {
    const note = ` (1/${this.members} of it, this process's part while ${this.options.storeName} is away)`;
    const parts = new Map<Rule, Rule>();
    const part = (rule: Rule): Rule => {
      const known = parts.get(rule) ?? partOf(rule, this.members, note);
      parts.set(rule, known);
      return known;
    };
    const hosts = new Map<HostRule, HostRule>();
    const host = (whole: HostRule): HostRule => {
      let known = hosts.get(whole);
      if (known === undefined) {
        const intents = new Map(Array.from(whole.intents, ([name, rule]) => [name, part(rule)]));
        known = { ...whole, rule: part(whole.rule), intents };
        hosts.set(whole, known);
      }
      return known;
    };
    return {
      ...policy,
      hostRule: (key) => host(policy.hostRule(key)),
      overflow: host(policy.overflow),
      scopeRule: (name) => {
        const rule = policy.scopeRule(name);
        return rule && part(rule);
      },
      global: policy.global && part(policy.global),
    };
  }
}

function addStart(starts: Missed["starts"], atUs: number, units: number): void {
  const last = starts.at(-1);
  if (last?.atUs === atUs) {
    last.count += 1;
    last.units += units;
  } else starts.push({ atUs, count: 1, units });
  if (starts.length <= STARTS_MOST) return;
  // Two by two, each pair as of its later one.
  for (let index = starts.length - 2; index >= 0; index -= 2) {
    const [{ count, units: theirs }] = starts.splice(index, 1);
    starts[index].count += count;
    starts[index].units += theirs;
  }
}

/** One part of a rule. What cannot be divided, a place or a unit, each process has once. */
function partOf(rule: Rule, count: number, note: string): Rule {
  if (!rule.enabled || count <= 1) return rule;
  const { burst, concurrency, gapUs, quota, ratePerUs, text, windows } = rule;
  const say = (words: string | undefined): string | undefined => words && words + note;
  return {
    ...rule,
    whole: rule,
    gapUs: gapUs * count,
    ratePerUs: ratePerUs * count,
    burst: Math.max(1, Math.min(Math.floor(burst / count), Math.floor(Number.MAX_SAFE_INTEGER / (ratePerUs * count)))),
    windows: windows.map(({ count: units, perUs }) => {
      const own = Math.floor(units / count);
      const longer = own > 0 ? { count: own, perUs } : { count: 1, perUs: Math.ceil((perUs * count) / units) };
      return { ...longer, grainUs: windowGrainUs(longer.count, longer.perUs) };
    }),
    quota: quota && { ...quota, count: Math.max(1, Math.floor(quota.count / count)) },
    concurrency: Math.max(1, Math.floor(concurrency / count)),
    text: {
      minDelay: say(text.minDelay),
      rate: say(text.rate),
      quota: say(text.quota),
      concurrency: say(text.concurrency),
      windows: text.windows.map((words) => words + note),
    },
  };
}
