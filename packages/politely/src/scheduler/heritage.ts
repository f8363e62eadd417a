import type { CompiledPolicy } from "../policy/types.js";
import type { Target } from "../types.js";
import type { Engine } from "./engine.js";
import { copyRow, joinStops, SOURCES } from "./joinRows.js";
import { intentRow } from "./keys.js";
import { ONE } from "./ledger.js";
import type { Profile } from "./profile.js";
import { keyUnder } from "./renames.js";

/** Ways of making keys that are remembered at most; the oldest are forgotten first. */
const PAST_MOST = 16;

/** How an earlier policy made keys, until nothing that was owed under them is owed any more. */
interface Past {
  readonly policy: CompiledPolicy;
  readonly untilUs: number;
}

interface Heritage {
  readonly plain: CompiledPolicy;
  readonly past: readonly Past[];
}

const heritages = new WeakMap<CompiledPolicy, Heritage>();

/** Converts what a row has of the rule of another row into its own. */
export type ConvertRow = (slot: number, from: Profile, nowUs: number) => void;

/**
 * The next policy, under which a key that is new begins with what its requests owe under their key of before: a port that has
 * limits of its own from now on, a host that is no longer part of a group.
 *
 * Who is in flight is counted, and what is answered heard, at the key of before. `next` itself when nobody can owe anything.
 */
export function withHeritage(engine: Engine, next: CompiledPolicy, convert: ConvertRow, nowUs: number): CompiledPolicy {
  const known = heritages.get(engine.policy);
  const last = { policy: known?.plain ?? engine.policy, untilUs: owedUntilUs(engine, nowUs) };
  const all = [last, ...(known?.past ?? [])];
  const past = all.filter(({ untilUs }) => untilUs > nowUs).slice(0, PAST_MOST);
  if (past.length === 0 || engine.keys.hosts.size === 0) return next;
  const endUs = past.reduce((latest, { untilUs }) => Math.max(latest, untilUs), nowUs);
  const policy: CompiledPolicy = {
    ...next,
    resolve(target) {
      const parts = next.resolve(target);
      if (engine.keys.hosts.has(parts.key)) return parts;
      const atUs = engine.nowUs();
      if (atUs < endUs) inherit(engine, past, convert, { target, key: parts.key, nowUs: atUs });
      else if (engine.policy === policy) engine.policy = next;
      return parts;
    },
  };
  heritages.set(policy, { plain: next, past });
  return policy;
}

function inherit(
  engine: Engine,
  past: readonly Past[],
  convert: ConvertRow,
  { target, key, nowUs }: { readonly target: Target; readonly key: string; readonly nowUs: number },
): void {
  const { keys, policy, ledger } = engine;
  const names = past.map((each) => (each.untilUs > nowUs ? keyUnder(each.policy, target) : undefined));
  const host = policy.hostRule(key);
  let heir: number | undefined;
  let isBlank = true;
  for (const name of new Set(names)) {
    if (name === undefined || name === key || !keys.hosts.has(name)) continue;
    heir ??= keys.host(key, host.rule, nowUs);
    // Making the row may have made another one go, which owed nothing then.
    const from = keys.hosts.get(name);
    if (heir === undefined || from === undefined) continue;
    if (isBlank) {
      isBlank = false;
      copyRow(ledger, from, heir, nowUs);
      convert(heir, ledger.profileOf(from), nowUs);
    } else joinStops(ledger, from, heir);
    for (const [intent, rule] of host.intents) {
      const before = keys.scopes.get(intentRow(name, intent));
      if (before === undefined || keys.scopes.has(intentRow(key, intent))) continue;
      const slot = keys.scope(intentRow(key, intent), rule);
      copyRow(ledger, before, slot, nowUs);
      convert(slot, ledger.profileOf(before), nowUs);
    }
  }
}

/** When nothing that hosts owe now is owed any more. */
function owedUntilUs({ ledger, keys }: Engine, nowUs: number): number {
  let latestUs = nowUs;
  const atLeast = (untilUs = nowUs): void => {
    latestUs = Math.max(latestUs, untilUs);
  };
  for (const slot of keys.hosts.values()) {
    if (ledger.isFresh(slot, nowUs)) continue;
    const { rule } = ledger.profileOf(slot);
    atLeast(ledger.cooldowns.get(slot)?.untilUs);
    atLeast(ledger.pauses.get(slot));
    atLeast(ledger.former.get(slot)?.untilUs);
    for (const source of SOURCES) atLeast(ledger.slowdowns.get(slot, source)?.untilUs);
    if (rule.gapUs !== 0) atLeast(ledger.gapAt(slot));
    if (rule.rateCount !== 0) atLeast(ledger.rateAt(slot, { ...ONE, rate: rule.burst }));
    rule.windows.forEach(({ perUs }, index) => {
      if (ledger.windowUsed(slot, index, nowUs) > 0) atLeast(nowUs + perUs);
    });
    if (rule.quota !== undefined) atLeast(ledger.quotas.readyAt(slot, rule.quota, rule.quota.count, nowUs));
  }
  return latestUs;
}
