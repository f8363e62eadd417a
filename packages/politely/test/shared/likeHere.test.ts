import fc from "fast-check";
import { expect, it } from "vitest";
import type { Limits, PolicyInput } from "../../src/policy/types.js";
import { seeded } from "../laws/seeded.js";
import { type Errand, playErrands } from "./oneOrStore.js";

const SHORT_MS = 300;
const LONG_MS = 25_000;
/** Starts are granted ahead by so much: somebody who comes meanwhile may have to let one more go first. */
const AHEAD_MS = 50;

const places = fc.option(fc.integer({ min: 1, max: 3 }), { nil: undefined, freq: 1 });
const shortGap = fc.option(fc.constantFrom(100, SHORT_MS), { nil: undefined, freq: 1 });

function limitsOf(gap: fc.Arbitrary<number | undefined>): fc.Arbitrary<Limits> {
  return fc.record({ gap, places }).map((drawn) => ({
    ...(drawn.gap === undefined ? {} : { minDelay: drawn.gap }),
    ...(drawn.places === undefined ? {} : { concurrency: drawn.places }),
  }));
}

/** A policy in which hosts, intents and two proxies have limits, and sometimes everything together; `slow` has one more. */
function policyOf(
  limits: fc.Arbitrary<Limits>,
  slow: "nothing" | "search" | "proxy:1" = "nothing",
): fc.Arbitrary<PolicyInput> {
  const parts = { a: limits, b: limits, search: limits, one: limits, two: limits, global: fc.option(limits) };
  return fc.record(parts).map(({ a, b, search, one, two, global }) => {
    const slowed = (name: string, each: Limits): Limits => (name === slow ? { ...each, minDelay: LONG_MS } : each);
    return {
      default: a,
      hosts: { "b.org": { ...b, intents: { search: slowed("search", search) } } },
      scopes: { "proxy:1": slowed("proxy:1", one), "proxy:2": two },
      ...(global === null ? {} : { global }),
    };
  });
}

const target = fc.record({
  host: fc.constantFrom("a.org", "b.org"),
  intent: fc.constantFrom(undefined, undefined, "search"),
  scopes: fc.constantFrom([], [], ["proxy:1"], ["proxy:2"]),
});

interface Drawn extends Errand {
  readonly target: { readonly host: string; readonly intent?: string; readonly scopes: readonly string[] };
}

const errand: fc.Arbitrary<Drawn> = fc
  .record({ atMs: fc.integer({ min: 0, max: 4_000 }), target, holdMs: fc.constantFrom(20, 100, 250) })
  .map(({ atMs, target: { host, intent, scopes }, holdMs }) => {
    const isSearch = intent !== undefined && host === "b.org";
    return { atMs, holdMs, target: { host, scopes, ...(isSearch ? { intent } : {}) } };
  });

const errands = fc.uniqueArray(errand, { minLength: 1, maxLength: 20, selector: ({ atMs }) => atMs });

/** When those start who need nothing slow, in order. */
async function quickStarts(
  where: "here" | "store",
  policy: PolicyInput,
  plan: readonly Drawn[],
  slow: string,
): Promise<number[]> {
  const starts = await playErrands(where, policy, plan, { lengthMs: 60_000 });
  return starts
    .filter((_, index) => plan[index].target.intent !== slow && !plan[index].target.scopes.includes(slow))
    .map((atMs) => (atMs === "never" ? Number.POSITIVE_INFINITY : atMs))
    .sort((a, b) => a - b);
}

it("starts every request on a store at the instant at which it starts without one, whichever hosts, intents, scopes and places are shared", async () => {
  const property = fc.asyncProperty(policyOf(limitsOf(fc.constant(undefined))), errands, async (policy, plan) => {
    const options = { lengthMs: 20_000 };
    const here = await playErrands("here", policy, plan, options);
    expect(await playErrands("store", policy, plan, options)).toEqual(here);
  });
  await fc.assert(property, seeded(150));
});

it.each(["nothing", "search", "proxy:1"] as const)(
  "lets nobody on a store wait for what others need, and loses no place, with gaps and places of all kinds: slow is %s",
  async (slow) => {
    const property = fc.asyncProperty(policyOf(limitsOf(shortGap), slow), errands, async (policy, plan) => {
      const here = await quickStarts("here", policy, plan, slow);
      const store = await quickStarts("store", policy, plan, slow);
      const lateMs = Math.max(0, ...store.map((atMs, index) => atMs - here[index]));
      // Which lane goes first decides how long others wait, and may differ where a start is granted ahead: by a few gaps.
      expect(lateMs).toBeLessThanOrEqual(3 * (SHORT_MS + AHEAD_MS));
    });
    await fc.assert(property, seeded(100));
  },
);
