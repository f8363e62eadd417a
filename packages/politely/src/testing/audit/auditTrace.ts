import { compilePolicy } from "../../policy/compile.js";
import type { CompiledPolicy, PolicyInput, ResolvedTarget } from "../../policy/types.js";
import { ignoredRetryAfters, judgeKey } from "./judge.js";
import { type AuditRule, fullestRun, greatestCrowd } from "./runs.js";
import { type Asked, type Timeline, Trace, timelineOf } from "./trace.js";
import type { AuditedKey, AuditOptions, AuditPeak, AuditReport, TraceAudit, TraceEntry } from "./types.js";

const secondUs = 1_000_000;
const maxHostsKnown = 10_000;

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
  for (const [name, isFine, rule] of optionRules) {
    const value = options[name];
    if (value !== undefined && !isFine(value)) throw new RangeError(`${name} must be ${rule}; got ${value}.`);
  }
  return new Audit(compilePolicy(policy), options);
}

type Target = Parameters<CompiledPolicy["resolve"]>[0];
type OptionRule = readonly [name: keyof AuditOptions, isFine: (value: number) => boolean, rule: string];

const isLength = (ms: number): boolean => ms >= 0 && ms <= 1e12;
const isWholeFrom = (least: number) => (count: number) => Number.isSafeInteger(count) && count >= least;

const optionRules: readonly OptionRule[] = [
  ["slackMs", isLength, "milliseconds from 0 to 1e12"],
  ["answerWithinMs", isLength, "milliseconds from 0 to 1e12"],
  ["wallAtZeroMs", Number.isFinite, "finite"],
  ["maxProof", isWholeFrom(2), "a whole number from 2"],
  ["maxEntries", (count) => isWholeFrom(1)(count) && count <= 2 ** 32, "a whole number from 1 to 2^32"],
];

type Costs = Readonly<Record<"rate" | "window" | "quota", number>>;

/** Which key, what it is held against, and what was counted under it. */
interface Key extends Pick<AuditedKey, "kind" | "key" | "intent" | "origin"> {
  readonly rule: AuditRule;
  readonly ids: number[];
  readonly statuses: Map<number, number>;
  readonly asked: Asked[];
  /** Of entries that cost something else than one unit. */
  readonly costs: Map<number, Costs>;
}

class Audit implements TraceAudit {
  readonly #policy: CompiledPolicy;
  readonly #options: AuditOptions;
  readonly #trace: Trace;
  readonly #keys = new Map<string, Key>();
  /** The keys of hosts as they were written, for logs that have few of them. */
  readonly #ofHost = new Map<string, readonly Key[]>();
  /** Many hosts share a rule. */
  readonly #limits = new Map<AuditRule, readonly string[]>();

  constructor(policy: CompiledPolicy, options: AuditOptions) {
    this.#policy = policy;
    this.#options = options;
    this.#trace = new Trace(options);
  }

  add(entry: TraceEntry): void {
    const { maxEntries = 10_000_000 } = this.#options;
    const id = this.#trace.length;
    if (id >= maxEntries)
      throw new RangeError(`The trace has more than ${maxEntries} entries. Divide it, or raise maxEntries.`);
    const { cost = 1, status, host, url, intent, scopes } = entry;
    checkCost(cost);
    const isHostAlone = url === undefined && intent === undefined && scopes === undefined && host !== undefined;
    const target =
      (isHostAlone && this.#ofHost.get(host)) || this.#policy.resolve({ url, host, intent, scopes } as Target);
    const asked = this.#trace.add(entry);
    const keys = "key" in target ? this.#keysOf(target) : target;
    for (const key of keys) {
      key.ids.push(id);
      if (status !== undefined && entry.unused !== true) key.statuses.set(status, (key.statuses.get(status) ?? 0) + 1);
      if (cost !== 1) key.costs.set(id, costsOf(key, cost));
    }
    if (asked !== undefined) keys[0].asked.push(asked);
    if (!isHostAlone || keys === target) return;
    if (this.#ofHost.size >= maxHostsKnown) this.#ofHost.clear();
    this.#ofHost.set(detached(host), keys);
  }

  report(): AuditReport {
    const keys = [...this.#keys.values()].map((key) => this.#judge(key));
    return { isClean: keys.every(({ isClean }) => isClean), entries: this.#trace.length, keys };
  }

  /** The keys of a request, its host's first. */
  #keysOf({ key, intent, scopes }: ResolvedTarget): readonly Key[] {
    const policy = this.#policy;
    const { rule, origin, exempt, intents, scopes: own = [] } = policy.hostRule(key);
    const keys: Key[] = [];
    const add = (kind: Key["kind"], of: Pick<Key, "key" | "origin" | "intent">, found: AuditRule | undefined): void => {
      if (found === undefined) return;
      const name = `${kind}\n${of.key}\n${of.intent}`;
      let known = this.#keys.get(name);
      if (known === undefined) {
        const nothing = { ids: [], statuses: new Map(), asked: [], costs: new Map() };
        known = { kind, ...of, key: detached(of.key), rule: found, ...nothing };
        this.#keys.set(name, known);
      }
      keys.push(known);
    };
    add("host", { key, origin, intent: undefined }, rule);
    if (exempt) return keys;
    if (intent !== undefined)
      add("intent", { key, intent, origin: `${origin}.intents.${intent}` }, intents.get(intent));
    for (const scope of new Set([...own, ...scopes]))
      add("scope", { key: scope, origin: "scopes", intent: undefined }, policy.scopeRule(scope));
    add("global", { key: "global", origin: "global", intent: undefined }, policy.global);
    return keys;
  }

  #limitsOf(rule: AuditRule): readonly string[] {
    const known = this.#limits.get(rule) ?? limitTexts(rule);
    this.#limits.set(rule, known);
    return known;
  }

  #judge({ kind, key, intent, origin, rule, ...counted }: Key): AuditedKey {
    const trace = this.#trace;
    const { maxProof = 10, wallAtZeroMs = 0 } = this.#options;
    const ids = Uint32Array.from(counted.ids);
    const timeline = timelineOf(trace, ids);
    const { costs } = counted;
    const unitsOf = (id: number, of: keyof Costs): number => (costs.size === 0 ? 1 : (costs.get(id)?.[of] ?? 1));
    const violations = rule.enabled ? judgeKey({ trace, ids, timeline, rule, unitsOf, maxProof, wallAtZeroMs }) : [];
    const ignored = ignoredRetryAfters(trace, ids, rule.enabled ? counted.asked : [], maxProof);
    const inFlight = greatestCrowd(trace, ids, { untilUs: (id) => trace.endOf(id), unitsOf: () => 1 });
    const hasEnds = ids.some((id) => !Number.isNaN(trace.endOf(id)));
    const sent = ids.filter((id) => trace.isSent(id));
    const statuses = [...counted.statuses].map(([status, count]) => ({ status, count }));
    return {
      kind,
      key,
      intent,
      origin,
      limits: this.#limitsOf(rule),
      isLimited: rule.enabled,
      requests: sent.length,
      statuses: statuses.toSorted((one, other) => one.status - other.status),
      firstMs: sent.reduce((least, id) => Math.min(least, trace.loOf(id)), Number.POSITIVE_INFINITY) / 1000,
      lastMs: sent.reduce((most, id) => Math.max(most, trace.hiOf(id)), Number.NEGATIVE_INFINITY) / 1000,
      peaks: peaksOf(timeline, rule),
      peakConcurrency: hasEnds ? (inFlight?.units ?? 0) : undefined,
      violations,
      ignoredCount: ignored.count,
      ignoredRetryAfters: ignored.worst,
      isClean: violations.length === 0 && ignored.count === 0,
    };
  }
}

/** What an entry takes from each kind of limit of a key. A record may speak of the key by its name. */
function costsOf({ kind, key }: Key, cost: NonNullable<TraceEntry["cost"]>): Costs {
  if (typeof cost === "number") return { rate: cost, window: cost, quota: cost };
  const name = kind === "scope" ? key : kind;
  const own = Object.hasOwn(cost, name) ? cost[name] : undefined;
  const of = (limit: string): number => own ?? (Object.hasOwn(cost, limit) ? cost[limit] : 1);
  return { rate: of("rate"), window: of("window"), quota: of("quota") };
}

/** The most starts in a second and in the length of each limit. Two limits of one length: the stricter. */
function peaksOf(timeline: Timeline, rule: AuditRule): AuditPeak[] {
  const allowed = new Map<number, number | undefined>([[secondUs, undefined]]);
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

function checkCost(cost: NonNullable<TraceEntry["cost"]>): void {
  if (cost === 1) return;
  for (const units of typeof cost === "number" ? [cost] : Object.values(cost)) {
    if (!Number.isSafeInteger(units) || units < 0)
      throw new RangeError(`cost must be a whole number from 0; got ${units}.`);
  }
}
