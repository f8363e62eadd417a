import type { Rule } from "../core/rule.js";
import type { CompiledPolicy, HostRule } from "../policy/types.js";
import type { Target } from "../types.js";
import { convertRow } from "./convertRow.js";
import type { Engine } from "./engine.js";
import { copyRow, joinStops } from "./joinRows.js";
import { INTENT_ROWS, intentRow } from "./keys.js";
import { owesUntil } from "./owing.js";
import { keyUnder } from "./renames.js";

/** Ways of making keys that are remembered at most; the oldest are forgotten first. */
const PAST_MOST = 16;
/** How long after the last start under a way of making keys a new key is looked for there at most, for limits of its own that nobody owed anything to then. */
const REACH_MOST_US = 86_400_000_000;

/** How an earlier policy made keys. */
interface Past {
  readonly policy: CompiledPolicy;
  /** When nothing that was owed at the change is owed any more. */
  readonly untilUs: number;
  /** The last start or answer before the change. A limit that is new to its key may count it all the same. */
  readonly lastUs: number;
}

interface Heritage {
  readonly plain: CompiledPolicy;
  readonly past: readonly Past[];
}

const heritages = new WeakMap<CompiledPolicy, Heritage>();

/**
 * The next policy, under which a key that is new begins with what its requests owe under their key of before: a port that has
 * limits of its own from now on, a host that is no longer part of a group.
 *
 * Who is in flight is counted, and what is answered heard, at the key of before. `next` itself when nobody can owe anything.
 */
export function withHeritage(engine: Engine, next: CompiledPolicy, nowUs: number): CompiledPolicy {
  const known = heritages.get(engine.policy);
  const last = { policy: known?.plain ?? engine.policy, ...owing(engine, nowUs) };
  const past = [last, ...(known?.past ?? [])].filter((each) => isOwed(each, REACH_MOST_US, nowUs)).slice(0, PAST_MOST);
  if (past.length === 0) return next;
  const policy: CompiledPolicy = {
    ...next,
    resolve(target) {
      const parts = next.resolve(target);
      if (engine.keys.hosts.has(parts.key)) return parts;
      const atUs = engine.nowUs();
      const host = next.hostRule(parts.key);
      const heard = past.filter((each) => isOwed(each, reachUs(host), atUs));
      if (heard.length > 0) inherit(engine, heard, { target, key: parts.key, host, nowUs: atUs });
      else if (engine.policy === policy && !past.some((each) => isOwed(each, REACH_MOST_US, atUs)))
        engine.policy = next;
      return parts;
    },
  };
  heritages.set(policy, { plain: next, past });
  return policy;
}

/** Whether a key may owe something from then, whose limits look back as far as that. */
function isOwed({ untilUs, lastUs }: Past, backUs: number, nowUs: number): boolean {
  return Math.max(untilUs, lastUs + Math.min(backUs, REACH_MOST_US)) > nowUs;
}

/** How long a start may count under the limits of a host and its intents. */
function reachUs({ rule, intents }: HostRule): number {
  const reachOf = ({ gapUs, rateCount, ratePerUs, windows }: Rule): number =>
    windows.reduce(
      (most, { perUs }) => Math.max(most, perUs),
      Math.max(gapUs, rateCount === 0 ? 0 : ratePerUs / rateCount),
    );
  return [...intents.values()].reduce((most, intent) => Math.max(most, reachOf(intent)), reachOf(rule));
}

interface Heir {
  readonly target: Target;
  readonly key: string;
  readonly host: HostRule;
  readonly nowUs: number;
}

function inherit(engine: Engine, past: readonly Past[], { target, key, host, nowUs }: Heir): void {
  const { keys, adaptive, ledger } = engine;
  const begin = (slot: number, from: number): void => {
    copyRow(ledger, from, slot, nowUs);
    convertRow(ledger, slot, ledger.profileOf(from).rule, nowUs);
    adaptive.conform(slot);
  };
  let isBlank = true;
  for (const name of new Set(past.map((each) => keyUnder(each.policy, target)))) {
    if (name === undefined || name === key) continue;
    const heir = keys.hosts.has(name) ? keys.host(key, host.rule, nowUs) : undefined;
    // Making the row may have made another one go, which owed nothing then.
    const from = keys.hosts.get(name);
    if (heir !== undefined && from !== undefined) {
      if (isBlank) begin(heir, from);
      else joinStops(ledger, from, heir);
      isBlank = false;
    }
    for (const [intent, rule] of host.intents) {
      const before = keys.scopes.get(intentRow(name, intent));
      if (before === undefined || keys.scopes.has(intentRow(key, intent))) continue;
      begin(keys.scope(intentRow(key, intent), rule), before);
    }
  }
}

/** When nothing that hosts and their intents owe now is owed any more, and when the last of them was used. */
function owing({ ledger, keys }: Engine, nowUs: number): { untilUs: number; lastUs: number } {
  let untilUs = nowUs;
  let lastUs = Number.NEGATIVE_INFINITY;
  const look = (slot: number): void => {
    untilUs = Math.max(untilUs, owesUntil(ledger, slot, nowUs));
    lastUs = Math.max(lastUs, ledger.lastUs(slot), ledger.holds.get(slot)?.answeredUs ?? lastUs);
  };
  for (const slot of keys.hosts.values()) look(slot);
  for (const [name, slot] of keys.scopes) if (name.startsWith(INTENT_ROWS)) look(slot);
  return { untilUs, lastUs };
}
