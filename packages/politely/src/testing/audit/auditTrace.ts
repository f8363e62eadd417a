import { compilePolicy } from "../../policy/compile.js";
import type { CompiledPolicy, PolicyInput, ResolvedTarget } from "../../policy/types.js";
import { type Asked, Entries } from "./entries.js";
import { judgeKey } from "./judgeKey.js";
import { KeyTally, type TallyAbout } from "./keyTally.js";
import { Numbers } from "./numbers.js";
import { greatestCrowd } from "./occupancy.js";
import type { AuditRule } from "./quota.js";
import { ignoredRetryAfters } from "./retryAfters.js";
import { fullestRun } from "./spacing.js";
import { type Timeline, timelineOf } from "./timeline.js";
import type { AuditedKey, AuditOptions, AuditPeak, AuditReport, TraceAudit, TraceEntry } from "./types.js";

const MAX_ENTRIES = 10_000_000;
const MAX_PROOF = 10;
const SECOND_US = 1_000_000;
const MAX_HOSTS_KNOWN = 10_000;

/**
 * Says whether a trace kept to a policy: for each key the tightest violation of each limit, with the entries that prove it.
 *
 * The trace may be in any order. It is judged by arithmetic of its own, not by the limiter's. Where an instant is an interval, a
 * violation is reported only if no choice of times inside the intervals complies with that limit. This is exact for gaps, rates,
 * windows and quotas as long as no interval reaches around another and starts of one key cost the same (for rates: whatever they
 * cost). Otherwise, and for concurrency and `countFrom: "answer"` with intervals, it is sufficient: what is reported is a
 * violation, and some may be missed. Each limit is judged alone.
 *
 * Not judged: cooldowns without a Retry-After, backoff, `adaptive` below its maximum, robots.txt. A million entries take seconds.
 * Throws `PolicyError` for a bad policy, `TypeError` or `RangeError` naming the entry that makes no sense.
 */
export function auditTrace(
  trace: Iterable<TraceEntry>,
  policy: PolicyInput = {},
  options: AuditOptions = {},
): AuditReport {
  const audit = createTraceAudit(policy, options);
  let index = 0;
  for (const entry of trace) {
    try {
      audit.add(entry);
    } catch (error) {
      if (!(error instanceof TypeError || error instanceof RangeError)) throw error;
      const Kind = error instanceof TypeError ? TypeError : RangeError;
      throw new Kind(`Entry ${index} of the trace: ${error.message}`, { cause: error });
    }
    index += 1;
  }
  return audit.report();
}

/** Begins an audit that takes its trace entry by entry: `auditTrace` for logs too long for a list. Keeps about 60 bytes of each. */
export function createTraceAudit(policy: PolicyInput = {}, options: AuditOptions = {}): TraceAudit {
  checkOptions(options);
  return new Audit(compilePolicy(policy), options);
}

class Audit implements TraceAudit {
  readonly #policy: CompiledPolicy;
  readonly #options: AuditOptions;
  readonly #entries: Entries;
  readonly #tallies = new Map<string, KeyTally>();
  /** Pairs: the number of a key, and of an entry counted under it. */
  readonly #counted = new Numbers();
  /** Host names as they were written, for logs that have few of them. */
  readonly #hosts = new Map<string, ResolvedTarget>();
  /** Many hosts share a rule. */
  readonly #limits = new Map<AuditRule, readonly string[]>();

  constructor(policy: CompiledPolicy, options: AuditOptions) {
    this.#policy = policy;
    this.#options = options;
    this.#entries = new Entries(options);
  }

  add(entry: TraceEntry): void {
    const most = this.#options.maxEntries ?? MAX_ENTRIES;
    if (this.#entries.length >= most)
      throw new RangeError(`The trace has more than ${most} entries. Divide it, or raise maxEntries.`);
    const target = this.#resolve(entry);
    const read = this.#entries.read(entry);
    checkCost(entry.cost);
    const id = this.#entries.keep(read);
    const status = entry.unused === true ? undefined : entry.status;
    for (const tally of this.#talliesOf(target)) {
      tally.add(id, status, entry.cost);
      this.#counted.push(tally.number);
      this.#counted.push(id);
    }
    if (read.asked !== undefined) this.#hostTally(target.key).addAsked({ id, ...read.asked });
  }

  report(): AuditReport {
    const tallies = [...this.#tallies.values()];
    const ids = this.#idsByKey(tallies);
    const keys = tallies.map((tally, index) => this.#judge(tally, ids[index]));
    return { isClean: keys.every(({ isClean }) => isClean), entries: this.#entries.length, keys };
  }

  #resolve({ url, host, intent, scopes }: TraceEntry): ResolvedTarget {
    const policy = this.#policy;
    if (intent === undefined && scopes === undefined && url === undefined && host !== undefined) {
      const known = this.#hosts.get(host);
      if (known !== undefined) return known;
      const name = detached(host);
      const target = policy.resolve({ host: name });
      if (this.#hosts.size >= MAX_HOSTS_KNOWN) this.#hosts.clear();
      this.#hosts.set(name, target);
      return target;
    }
    return policy.resolve({
      ...(url === undefined ? {} : { url }),
      ...(host === undefined ? {} : { host }),
      ...(intent === undefined ? {} : { intent }),
      ...(scopes === undefined ? {} : { scopes }),
    });
  }

  #hostTally(key: string): KeyTally {
    return this.#tally(`host\n${key}`, () => {
      const { rule, origin } = this.#policy.hostRule(key);
      return { kind: "host", key: detached(key), origin, rule, costName: "host" };
    });
  }

  #talliesOf({ key, intent, scopes }: ResolvedTarget): KeyTally[] {
    const policy = this.#policy;
    const tallies = [this.#hostTally(key)];
    const host = policy.hostRule(key);
    if (host.exempt) return tallies;
    const add = (name: string, rule: AuditRule | undefined, make: (rule: AuditRule) => TallyAbout): void => {
      if (rule !== undefined) tallies.push(this.#tally(name, () => make(rule)));
    };
    if (intent !== undefined) {
      const origin = `${host.origin}.intents.${intent}`;
      add(`intent\n${key}\n${intent}`, host.intents.get(intent), (rule) => {
        return { kind: "intent", key, intent, origin, rule, costName: "intent" };
      });
    }
    for (const scope of host.scopes === undefined ? scopes : new Set([...host.scopes, ...scopes])) {
      add(`scope\n${scope}`, policy.scopeRule(scope), (rule) => {
        return { kind: "scope", key: scope, origin: "scopes", rule, costName: scope };
      });
    }
    add("global", policy.global, (rule) => {
      return { kind: "global", key: "global", origin: "global", rule, costName: "global" };
    });
    return tallies;
  }

  #tally(name: string, about: () => TallyAbout): KeyTally {
    const known = this.#tallies.get(name);
    if (known !== undefined) return known;
    const tally = new KeyTally(this.#tallies.size, about());
    this.#tallies.set(name, tally);
    return tally;
  }

  #limitsOf(rule: AuditRule): readonly string[] {
    const known = this.#limits.get(rule) ?? limitTexts(rule);
    this.#limits.set(rule, known);
    return known;
  }

  /** The entries of each key, one list after the other in the same memory. */
  #idsByKey(tallies: readonly KeyTally[]): Uint32Array[] {
    const all = new Uint32Array(this.#counted.length / 2);
    const ends: number[] = [];
    let end = 0;
    for (const { count } of tallies) {
      ends.push(end);
      end += count;
    }
    for (let index = 0; index < this.#counted.length; index += 2) {
      const number = this.#counted.at(index);
      all[ends[number]] = this.#counted.at(index + 1);
      ends[number] += 1;
    }
    return tallies.map(({ count }, index) => all.subarray(ends[index] - count, ends[index]));
  }

  #judge(tally: KeyTally, ids: Uint32Array): AuditedKey {
    const entries = this.#entries;
    const { kind, key, intent, origin, rule } = tally.about;
    const timeline = timelineOf(entries, ids);
    const maxProof = this.#options.maxProof ?? MAX_PROOF;
    const unitsOf = tally.unitsOf.bind(tally);
    const it = { entries, ids, timeline, rule, unitsOf, maxProof, wallAtZeroMs: this.#options.wallAtZeroMs ?? 0 };
    const violations = rule.enabled ? judgeKey(it) : [];
    const asked: readonly Asked[] = rule.enabled ? tally.asked : [];
    const ignored = ignoredRetryAfters(entries, ids, asked, maxProof);
    const inFlight = greatestCrowd(entries, ids, { untilUs: (id) => entries.endOf(id), unitsOf: () => 1 });
    const hasEnds = ids.some((id) => !Number.isNaN(entries.endOf(id)));
    const sent = ids.filter((id) => !entries.isUnused(id));
    return {
      kind,
      key,
      intent,
      origin,
      limits: this.#limitsOf(rule),
      isLimited: rule.enabled,
      requests: sent.length,
      statuses: tally.statuses(),
      firstMs: sent.reduce((least, id) => Math.min(least, entries.loOf(id)), Number.POSITIVE_INFINITY) / 1000,
      lastMs: sent.reduce((most, id) => Math.max(most, entries.hiOf(id)), Number.NEGATIVE_INFINITY) / 1000,
      peaks: peaksOf(timeline, rule),
      peakConcurrency: hasEnds ? (inFlight?.units ?? 0) : undefined,
      violations,
      ignoredCount: ignored.count,
      ignoredRetryAfters: ignored.worst,
      isClean: violations.length === 0 && ignored.count === 0,
    };
  }
}

/** The most starts in a second and in the length of each limit. Two limits of one length: the stricter. */
function peaksOf(timeline: Timeline, rule: AuditRule): AuditPeak[] {
  const allowed = new Map<number, number | undefined>([[SECOND_US, undefined]]);
  const note = (perUs: number, count: number): void => {
    if (perUs > 0) allowed.set(perUs, Math.min(count, allowed.get(perUs) ?? count));
  };
  note(rule.gapUs, 1);
  // Shorter than the period by a microsecond, the longest that is surely within it.
  note(rule.ratePerUs, rule.burst + Math.floor((rule.rateCount * (rule.ratePerUs - 1)) / rule.ratePerUs));
  for (const { perUs, count } of rule.windows) note(perUs, count);
  const lengths = [...allowed].toSorted(([one], [other]) => one - other);
  return lengths.flatMap(([perUs, most]) => {
    const run = fullestRun(timeline, perUs, () => 1);
    if (run === undefined) return [];
    return [{ perMs: perUs / 1000, starts: run.units, allowed: most, fromMs: timeline.lo[run.first] / 1000 }];
  });
}

function limitTexts({ text, fromAnswer }: AuditRule): string[] {
  const limits: [string, string | undefined][] = [
    ["minDelay", text.minDelay],
    ["rate", text.rate],
    ...text.windows.map((window): [string, string] => ["window", window]),
    ["quota", text.quota],
    ["concurrency", text.concurrency],
    ["countFrom", fromAnswer ? "answer" : undefined],
  ];
  return limits.flatMap(([name, value]) => (value === undefined ? [] : [`${name} ${value}`]));
}

/** A copy of its own: a text cut out of a line would keep the line in memory, and the piece of the log around it. */
function detached(text: string): string {
  return ` ${text}`.slice(1);
}

function checkCost(cost: TraceEntry["cost"]): void {
  if (cost === undefined || cost === 1) return;
  for (const units of typeof cost === "number" ? [cost] : Object.values(cost)) {
    if (!Number.isSafeInteger(units) || units < 0)
      throw new RangeError(`cost must be a whole number from 0; got ${units}.`);
  }
}

function checkOptions({
  slackMs = 0,
  answerWithinMs = 0,
  wallAtZeroMs = 0,
  maxProof = 2,
  maxEntries = 1,
}: AuditOptions): void {
  for (const [name, value] of Object.entries({ slackMs, answerWithinMs })) {
    if (!(value >= 0 && value <= 1e12))
      throw new RangeError(`${name} must be milliseconds from 0 to 1e12; got ${value}.`);
  }
  if (!Number.isFinite(wallAtZeroMs)) throw new RangeError(`wallAtZeroMs must be finite; got ${wallAtZeroMs}.`);
  if (!Number.isSafeInteger(maxProof) || maxProof < 2)
    throw new RangeError(`maxProof must be a whole number from 2; got ${maxProof}.`);
  if (!Number.isSafeInteger(maxEntries) || maxEntries < 1 || maxEntries > 2 ** 32)
    throw new RangeError(`maxEntries must be a whole number from 1 to 2^32; got ${maxEntries}.`);
}
