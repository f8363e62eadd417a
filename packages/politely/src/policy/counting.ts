import { PolicyError, type PolicyProblem } from "../errors.js";
import type { CompiledPolicy } from "./types.js";

/** So many hosts are named in an error. */
const NAMED_MOST = 5;

/**
 * Refuses a policy that counts the hosts of a limiter together in another way than the one in force: what was counted as one key cannot be
 * told apart afterwards. Throws `PolicyError` naming the hosts concerned.
 */
export function sameCounting(before: CompiledPolicy, after: CompiledPolicy, known: ReadonlyMap<string, unknown>): void {
  const problems: PolicyProblem[] = [];
  if (before.groupBy !== after.groupBy) {
    // The rows of scopes and of everything together have names that are no hosts.
    const names = [...known.keys()].filter((name) => !name.startsWith("\n"));
    const hosts = names.length === 0 ? "" : ` (known so far: ${listed(names)})`;
    const message = `must stay what it is, the very same function${hosts}; make a new limiter to group hosts in another way`;
    problems.push({ path: "groupBy", message });
  }
  const names = new Set([...before.together.keys(), ...after.together.keys()]);
  const changed = [...names].filter(
    (host) => known.has(host) && before.together.get(host) !== after.together.get(host),
  );
  if (changed.length > 0) {
    const message = `must not change whether ${listed(changed)} count together, as a preset says; make a new limiter for that`;
    problems.push({ path: "presets", message });
  }
  if (problems.length > 0) throw new PolicyError(problems);
}

function listed(hosts: readonly string[]): string {
  const more = hosts.length - NAMED_MOST;
  return hosts.slice(0, NAMED_MOST).join(", ") + (more > 0 ? ` and ${more} more` : "");
}
