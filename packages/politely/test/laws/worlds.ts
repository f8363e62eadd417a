import fc, { type Arbitrary } from "fast-check";
import type { PolicyInput } from "../../src/index.js";
import { type LimitSpec, toLimits } from "../oracle/spec.js";
import { type Start, startsOf } from "../oracle/trace.js";
import { specViolation } from "../oracle/violations.js";
import { anySpec, costBound, type SpecRange } from "./arbitraries.js";
import { globalKey } from "./play.js";

/** Limits of every kind of key at once: each host, all together, and two named scopes. */
export interface World {
  readonly host: LimitSpec;
  readonly global?: LimitSpec;
  readonly scopes?: Readonly<Record<string, LimitSpec>>;
}

/** The scopes that worlds know. */
export const worldScopes = ["key:x", "proxy:y"] as const;

/** Three hosts to ask for. */
export const worldHosts = ["a.example", "b.example", "c.example"] as const;

/** A random world. */
export function anyWorld(range: SpecRange = {}): Arbitrary<World> {
  return fc.record(
    {
      host: anySpec(range),
      global: anySpec(range),
      scopes: fc.record({ "key:x": anySpec(range), "proxy:y": anySpec(range) }),
    },
    { requiredKeys: ["host", "scopes"] },
  );
}

/** The world as a policy. */
export function toPolicy({ host, global, scopes = {} }: World): PolicyInput {
  return {
    default: toLimits(host),
    ...(global === undefined ? {} : { global: toLimits(global) }),
    scopes: Object.fromEntries(Object.entries(scopes).map(([name, spec]) => [name, toLimits(spec)])),
  };
}

/** The heaviest request that fits everywhere in the world. */
export function worldCost({ host, global, scopes = {} }: World): number {
  return costBound(host, global, ...Object.values(scopes));
}

/** Looks at every key of the world on its own; the first limit that was broken, and where. */
export function worldViolation(trace: readonly Start[], { host, global, scopes = {} }: World): string | undefined {
  const keys: [string, LimitSpec][] = [
    ...worldHosts.map((name): [string, LimitSpec] => [name, host]),
    ...Object.entries(scopes),
  ];
  if (global !== undefined) keys.push([globalKey, global]);
  for (const [key, spec] of keys) {
    const problem = specViolation(startsOf(trace, key), spec);
    if (problem !== undefined) return `${key}: ${problem}`;
  }
  return undefined;
}
