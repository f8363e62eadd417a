import type { Duration, Limits, PolicyInput } from "politely";
import { durationMs } from "../policy/rateParts.js";
import { EXEMPT, type HostRule, Rules, type ScopeRule } from "../policy/rules.js";
import { type Assumptions, type Curve, NONE, planAlone } from "./alone.js";
import { Parties } from "./parties.js";
import { peakInFlight } from "./peakInFlight.js";
import type { Binding, HostPlan, PlanOptions, PlanProgress } from "./plan.js";
import { planTogether, type SharerRule, WAITS_OF_SHARER } from "./together.js";
import { WAITS } from "./waits.js";

const MAX_LATENCY_MS = 600_000;
/** Beyond this, requests cannot be kept in one list of numbers. */
const MAX_REQUESTS = 100_000_000;
const NO_LIMITS: Limits = {};

/** What is to be planned, as often as somebody wants to know what other limits would make of it. */
export class PlanTask {
  readonly assumed: Assumptions;
  readonly rules: ReadonlyMap<string, HostRule>;
  /** The budget of all hosts together; undefined where there is none. */
  readonly shared: Limits | undefined;
  readonly requests: number;
  /** Whether the shared budget held somebody back, so that every start had to be played through. */
  isPlayed = false;
  readonly #parties: Parties;
  readonly #curves = new Map<string, Curve>();
  readonly #names = new Map<Limits, string>();
  #planned = 0;
  #toPlan = 0;

  constructor(
    counts: ReadonlyMap<string, number>,
    policy: PolicyInput,
    { latency = 200, concurrency, wallMs = Date.now() }: PlanOptions,
  ) {
    this.assumed = { latencyMs: checkLatency(latency), wallMs };
    const book = new Rules(policy);
    this.rules = new Map([...counts.keys()].map((key) => [key, book.of(key)]));
    this.#parties = new Parties(counts, this.rules);
    this.shared = withConcurrency(book.global, concurrency);
    this.requests = [...counts].reduce((sum, [key, count]) => sum + checkCount(key, count), 0);
  }

  /** Plans all hosts under these rules, the slowest first. */
  *hosts(
    rules: ReadonlyMap<string, HostRule>,
    shared: Limits | undefined,
  ): Generator<PlanProgress, readonly HostPlan[]> {
    const keys = [...this.#parties.counts.keys()].filter((key) => this.#count(key) > 0);
    const all = this.#parties.rules(rules);
    let plans: HostPlan[] | undefined;
    if (shared === undefined || isOnlyPlaces(shared)) plans = yield* this.#apart(keys, all);
    // Places that are never all taken hold nobody back: then hosts do as they would alone.
    if (shared !== undefined && !(plans !== undefined && this.#fits(plans, shared))) {
      this.isPlayed = true;
      plans = yield* this.#together(keys, all, shared);
    }
    const split = this.#parties.split(plans ?? [], this.assumed.latencyMs);
    return split.toSorted((a, b) => b.endsAtMs - a.endsAtMs || (a.key < b.key ? -1 : 1));
  }

  #fits(plans: readonly HostPlan[], { concurrency = 0 }: Limits): boolean {
    const paced = plans.filter(({ origin }) => origin !== EXEMPT);
    const isWhole = paced.every(({ starts, requests }) => starts.length === requests);
    return isWhole && peakInFlight({ hosts: paced, latencyMs: this.assumed.latencyMs }) <= concurrency;
  }

  #count(key: string): number {
    return this.#parties.counts.get(key) ?? 0;
  }

  #most(keys: readonly string[]): number {
    return keys.reduce((most, key) => Math.max(most, this.#count(key)), 0);
  }

  /** The same name for limits that say the same. */
  #nameOf(limits: Limits | undefined): string {
    if (limits === undefined) return "";
    let name = this.#names.get(limits);
    if (name === undefined) {
      name = JSON.stringify(limits);
      this.#names.set(limits, name);
    }
    return name;
  }

  /** Hosts that share nothing with all others: one curve for each rule serves all its hosts. Those of a scope play at once. */
  *#apart(keys: readonly string[], rules: ReadonlyMap<string, HostRule>): Generator<PlanProgress, HostPlan[]> {
    const groups = new Map<string, string[]>();
    const [scoped, alone] = split(keys, (key) => rules.get(key)?.scope !== undefined);
    const plans = scoped.length === 0 ? [] : yield* this.#together(scoped, rules, NO_LIMITS);
    for (const key of alone) {
      const name = this.#nameOf(rules.get(key)?.limits);
      const group = groups.get(name);
      if (group === undefined) groups.set(name, [key]);
      else group.push(key);
    }
    for (const members of groups.values()) this.#toPlan += this.#most(members);
    for (const [name, members] of groups) {
      const count = this.#most(members);
      let curve = this.#curves.get(name);
      if (curve === undefined) {
        curve = yield* this.#counted(planAlone(rules.get(members[0])?.limits, count, this.assumed));
        this.#curves.set(name, curve);
      } else this.#planned += count;
      for (const plan of this.#onCurve(members, rules, curve)) plans.push(plan);
    }
    return plans;
  }

  /** The hosts of one rule. Fewest requests first, so that waits are summed up once for all of them. */
  #onCurve(keys: readonly string[], rules: ReadonlyMap<string, HostRule>, curve: Curve): HostPlan[] {
    const waits = WAITS.map(() => 0);
    let summed = 0;
    return [...keys]
      .sort((a, b) => this.#count(a) - this.#count(b))
      .map((key) => {
        const requests = this.#count(key);
        const starts = curve.starts.subarray(0, requests);
        for (; summed < starts.length; summed++) {
          const number = curve.waitedFor[summed];
          if (number !== NONE) waits[number] += starts[summed] - starts[summed - 1];
        }
        const binds = mostOf(waits, curve.texts);
        return this.#hostPlan({ key, requests, starts, binds, nextMs: curve.nextMs }, rules);
      });
  }

  /** Hosts that share a budget: all of them play at once. This machine is exempt from it. */
  *#together(
    keys: readonly string[],
    rules: ReadonlyMap<string, HostRule>,
    shared: Limits,
  ): Generator<PlanProgress, HostPlan[]> {
    const [exempt, paced] = split(keys, (key) => rules.get(key)?.limits === undefined);
    const numbers = new Map<string, number>();
    const byNumber: SharerRule[] = [];
    const sharers = paced.map((key) => {
      const { limits = NO_LIMITS, scope } = rules.get(key) ?? {};
      const name = `${this.#nameOf(limits)} ${scope?.name ?? ""}`;
      const rule = numbers.get(name) ?? byNumber.push({ limits, scope }) - 1;
      numbers.set(name, rule);
      return { rule, requests: this.#count(key) };
    });
    this.#toPlan += sharers.reduce((sum, { requests }) => sum + requests, 0);
    const plan = yield* this.#counted(planTogether(sharers, byNumber, shared, this.assumed));
    const plans = paced.map((key, host) => {
      const { rule, requests } = sharers[host];
      const waits = plan.ownWaits.subarray(host * WAITS_OF_SHARER, (host + 1) * WAITS_OF_SHARER);
      const own = ownBinding(waits, plan.texts[rule], byNumber[rule].scope);
      const waitMs = plan.sharedWaits[host];
      const binds = waitMs > (own?.waitMs ?? 0) ? { scope: "global" as const, text: plan.sharedText, waitMs } : own;
      return this.#hostPlan({ key, requests, starts: plan.starts[host], binds, nextMs: plan.nextMs }, rules);
    });
    return [...plans, ...(yield* this.#apart(exempt, rules))];
  }

  #hostPlan(
    host: Omit<HostPlan, "endsAtMs" | "origin"> & { readonly nextMs: number },
    rules: ReadonlyMap<string, HostRule>,
  ): HostPlan {
    const { nextMs, ...rest } = host;
    const { starts, requests, key } = host;
    const known = starts.length;
    // Beyond the horizon it goes on at the pace it had: the start after `known` ones is due at `nextMs`.
    const lastMs = known === requests ? starts[known - 1] : (nextMs * (requests - 1)) / Math.max(1, known);
    return { ...rest, endsAtMs: lastMs + this.assumed.latencyMs, origin: rules.get(key)?.origin ?? "default" };
  }

  *#counted<Result>(steps: Generator<number, Result>): Generator<PlanProgress, Result> {
    for (;;) {
      const step = steps.next();
      if (step.done === true) return step.value;
      this.#planned += step.value;
      yield { planned: this.#planned, toPlan: this.#toPlan };
    }
  }
}

/** Whether nothing of these limits counts but how many are in flight. */
function isOnlyPlaces({ concurrency, minDelay, rate, window, quota, maxHold, adaptive }: Limits): boolean {
  const paces = [minDelay, rate, window, quota, maxHold, adaptive];
  return concurrency !== undefined && paces.every((pace) => pace === undefined);
}

/** The limit that was waited for longest; undefined when none was. */
function mostOf(waits: ArrayLike<number>, texts: readonly string[]): Binding | undefined {
  let most = 0;
  for (let number = 1; number < WAITS.length; number++) if (waits[number] > waits[most]) most = number;
  const waitMs = waits[most];
  return waitMs > 0 ? { scope: "host", text: texts[most], waitMs } : undefined;
}

/** The same of a host that played with others: one of its own limits, or of its scope. */
function ownBinding(waits: Float64Array, texts: readonly string[], scope: ScopeRule | undefined): Binding | undefined {
  const own = mostOf(waits, texts);
  const together = mostOf(waits.subarray(WAITS.length), texts.slice(WAITS.length));
  if (scope === undefined || together === undefined || together.waitMs <= (own?.waitMs ?? 0)) return own;
  return { ...together, origin: `scopes.${scope.name}` };
}

function split<Item>(items: readonly Item[], isFirst: (item: Item) => boolean): readonly [Item[], Item[]] {
  return [items.filter(isFirst), items.filter((item) => !isFirst(item))];
}

function withConcurrency(global: Limits | undefined, concurrency: number | undefined): Limits | undefined {
  if (concurrency === undefined) return global;
  if (!Number.isInteger(concurrency) || concurrency < 1) {
    throw new RangeError(`concurrency must be a whole number from 1; got ${concurrency}.`);
  }
  return { ...global, concurrency: Math.min(concurrency, global?.concurrency ?? concurrency) };
}

function checkLatency(latency: Duration): number {
  const ms = durationMs(latency);
  if (ms >= 0 && ms <= MAX_LATENCY_MS) return ms;
  throw new RangeError(`latency must be a duration from 0 to 10 min, such as "200ms"; got ${String(latency)}.`);
}

function checkCount(key: string, count: number): number {
  if (Number.isInteger(count) && count >= 0 && count <= MAX_REQUESTS) return count;
  throw new RangeError(`the count of "${key}" must be a whole number from 0 to 100,000,000; got ${count}.`);
}
