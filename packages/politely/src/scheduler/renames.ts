import type { CompiledPolicy } from "../policy/types.js";
import type { Target } from "../types.js";
import type { Engine } from "./engine.js";
import { joinRows } from "./joinRows.js";
import { HAS_GATE } from "./slab.js";

/** The key that a target has under a policy; undefined when it has none there. A grouping is the caller's code and may fail. */
export function keyUnder(policy: CompiledPolicy, target: Target): string | undefined {
  try {
    return policy.resolve(target).key;
  } catch {
    return undefined;
  }
}

/**
 * What every known key is called under another policy; works it out before anything changes.
 *
 * A name that the policy cannot read keeps its row. So does the name of a group, since it says nothing about the hosts in it.
 */
export class Renames {
  readonly #names = new Map<string, string>();
  /** Undefined when the names so far are those of groups. */
  readonly #policy: CompiledPolicy | undefined;

  constructor(
    readonly engine: Engine,
    policy: CompiledPolicy,
  ) {
    this.#policy = engine.policy.hostIsKey ? policy : undefined;
    if (this.#policy === undefined) return;
    for (const name of engine.keys.hosts.keys()) {
      const key = keyUnder(this.#policy, name);
      if (key !== undefined && key !== name) this.#names.set(name, key);
    }
  }

  /** The key that takes the place of `name`, of a host without a row too. */
  of(name: string): string {
    const known = this.#names.get(name);
    if (known !== undefined || this.#policy === undefined || this.engine.keys.hosts.has(name)) return known ?? name;
    return keyUnder(this.#policy, name) ?? name;
  }

  /** The name that the row of an intent, or of anything else that is no host, has from now on. */
  ofScope(name: string): string {
    const [kind, host, ...rest] = name.split("\n");
    return kind === "intent" ? [kind, this.of(host), ...rest].join("\n") : name;
  }

  /** Gives every row its new name. Rows that meet become one. Call it when they have their new rules. */
  apply(nowUs: number): void {
    const { keys, books, ledger, policy } = this.engine;
    const moving = [...this.#names].map(([name, key]) => {
      const slot = keys.host(name, policy.hostRule(key).rule, nowUs);
      keys.hosts.delete(name);
      return { key, slot };
    });
    for (const { key, slot } of moving) {
      const into = keys.hosts.get(key);
      if (slot === undefined) continue;
      if (into === undefined) {
        keys.hosts.set(key, slot);
        continue;
      }
      keys.host(key, policy.hostRule(key).rule, nowUs);
      const open = ledger.inFlight(slot, nowUs);
      const hasCounts = books.read(slot) !== undefined;
      if (ledger.lastUs(slot) !== Number.NEGATIVE_INFINITY || !books.isBlank(slot)) books.fold(slot);
      books.clear(slot, 0, nowUs);
      // Those in flight are counted where they are.
      if (hasCounts) books.folded.granted -= open;
      for (let index = 0; hasCounts && index < open; index++) books.granted(into, ledger.lastUs(slot), 0);
      this.#join(slot, into, nowUs);
    }
    for (const [name, slot] of Array.from(keys.scopes)) this.#renameScope(name, slot, nowUs);
  }

  #renameScope(name: string, slot: number, nowUs: number): void {
    const { scopes } = this.engine.keys;
    const { ledger } = this.engine;
    const next = this.ofScope(name);
    if (next === name) return;
    const into = scopes.get(next);
    // Two that the policy no longer knows may still have different rules: they stay apart.
    if (into !== undefined && ledger.profileOf(into) !== ledger.profileOf(slot)) return;
    scopes.delete(name);
    if (into === undefined) scopes.set(next, slot);
    else this.#join(slot, into, nowUs);
  }

  /** Makes one row part of another. No name leads to it any more; permits from before do. */
  #join(slot: number, into: number, nowUs: number): void {
    const { ledger, adaptive, queue, departures } = this.engine;
    const isUsed = ledger.inFlight(slot, nowUs) > 0 || ledger.slab.hasFlag(slot, HAS_GATE);
    joinRows(ledger, slot, into, nowUs);
    adaptive.conform(into);
    if (!isUsed) {
      ledger.letGo(slot);
      return;
    }
    ledger.loose.onMoved = (row) => {
      queue.touch(row);
      // The permit is not settled yet.
      queueMicrotask(() => {
        departures.judgeDeadlines(row);
        queue.run();
      });
    };
  }
}
