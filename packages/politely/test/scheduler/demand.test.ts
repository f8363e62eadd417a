import { describe, expect, it } from "vitest";
import { compilePolicy } from "../../src/policy/compile.js";
import type { PolicyInput } from "../../src/policy/types.js";
import { Books } from "../../src/scheduler/books.js";
import { ONE } from "../../src/scheduler/cost.js";
import { costOf, demandOf, demandOfKey, readCost } from "../../src/scheduler/demand.js";
import { Keys, OVERFLOW_KEY } from "../../src/scheduler/keys.js";
import { costAt } from "../../src/scheduler/lane.js";
import { Ledger } from "../../src/scheduler/ledger.js";
import type { AcquireOptions, Target } from "../../src/types.js";

const policy: PolicyInput = {
  default: { rate: "1/s", burst: 4 },
  hosts: { "api.example": { window: ["9/min", "6/s"], intents: { search: { quota: { count: 3, per: "day" } } } } },
  scopes: { "proxy:*": { concurrency: 2 }, "key:abc": { rate: "5/s", burst: 5 } },
  global: { minDelay: 1 },
};

/** What a target needs under a policy, with the tables it was found in. */
function setup(input: PolicyInput = policy, maxKeys = 100) {
  const compiled = compilePolicy(input);
  const ledger = new Ledger(true, () => undefined);
  const keys = new Keys(ledger, new Books(ledger.slab), { maxKeys, keepStats: 10, onDrop() {} });
  const demand = (target: Target) => demandOf(compiled, keys, target, 0);
  return { compiled, ledger, keys, demand };
}

/** A cost as a program without types might give it. */
function untyped(value: unknown): NonNullable<AcquireOptions["cost"]> {
  return value as number;
}

const units = (count: number) => ({ rate: count, window: count, quota: count });

describe("what a target needs", () => {
  it("is its host, and what is over everything", () => {
    const { demand, keys } = setup();
    const { name, key, scopeNames, slots } = demand("https://A.example/path");
    expect({ name, key, scopeNames }).toEqual({ name: "a.example", key: "a.example", scopeNames: ["host", "global"] });
    expect(slots).toEqual([keys.hosts.get("a.example"), keys.scopes.get("global")]);
  });

  it("is the intent and the scopes too, where it names them", () => {
    const { demand } = setup();
    const plain = demand("api.example");
    const full = demand({ host: "api.example", intent: "search", scopes: ["proxy:1", "key:abc"] });
    expect(full.scopeNames).toEqual(["host", "intent", "proxy:1", "key:abc", "global"]);
    expect(new Set(full.slots).size).toBe(5);
    expect([full.slots[0], full.slots[4]]).toEqual([plain.slots[0], plain.slots[1]]);
    expect(full.name).not.toBe(plain.name);
  });

  it("shares a scope with other hosts, and an intent with none", () => {
    const { demand, ledger } = setup();
    const one = demand({ host: "api.example", intent: "search", scopes: ["proxy:1"] });
    for (const slot of one.slots) ledger.take(slot, ONE, 0);
    const two = demand({ host: "b.example", intent: "search", scopes: ["proxy:1"] });
    expect(two.scopeNames).toEqual(["host", "proxy:1", "global"]);
    expect(two.slots[1]).toBe(one.slots[2]);
    expect(demand({ host: "b.example", scopes: ["proxy:2"] }).slots[1]).not.toBe(one.slots[2]);
  });

  it("is nothing but its row for a host that is exempt", () => {
    const { demand } = setup();
    expect(demand("localhost").scopeNames).toEqual(["host"]);
  });

  it("is the row that all hosts beyond the bound share, when the table is full of hosts that owe time", () => {
    const { demand, ledger } = setup(policy, 1);
    ledger.take(demand("a.example").slots[0], ONE, 0);
    const b = demand("b.example");
    ledger.take(b.slots[0], ONE, 0);
    const c = demand("c.example");
    expect([b.key, c.key, b.slots[0] === c.slots[0]]).toEqual([OVERFLOW_KEY, OVERFLOW_KEY, true]);
    expect(demand("a.example").key).toBe("a.example");
  });

  it("cannot be found for a scope that the policy does not know, unless it once did", () => {
    const { compiled, demand, keys } = setup();
    expect(() => demand({ host: "a.example", scopes: ["nobody"] })).toThrow(TypeError);
    expect(() => demand({ host: "a.example", scopes: ["nobody"] })).toThrow('"nobody"');
    const target = { key: "a.example", intent: undefined, scopes: ["nobody", "key:abc"] };
    expect(demandOfKey(compiled, keys, target, 0, true).scopeNames).toEqual(["host", "key:abc", "global"]);
  });
});

describe("a cost", () => {
  const scopeNames = ["host", "intent", "proxy:1", "global"];
  const read = (cost: AcquireOptions["cost"], least: 0 | 1 = 1) => {
    const each = readCost({ scopeNames }, cost, least);
    return scopeNames.map((_, index) => costAt(each, index));
  };

  it("is one everywhere when nothing is said", () => {
    expect([readCost({ scopeNames }, undefined, 1), readCost({ scopeNames }, 1, 1)]).toEqual([ONE, ONE]);
    expect(read({})).toEqual([ONE, ONE, ONE, ONE]);
  });

  it("is the same everywhere when it is a number", () => {
    expect(read(7)).toEqual([units(7), units(7), units(7), units(7)]);
  });

  it("is by kind of limit, and one for kinds not named", () => {
    const each = { rate: 1, window: 50, quota: 3 };
    expect(read({ window: 50, quota: 3 })).toEqual([each, each, each, each]);
  });

  it("is by scope where one is named, whatever the kinds say", () => {
    const other = { rate: 1, window: 50, quota: 1 };
    expect(read({ window: 50, "proxy:1": 2, host: 3 })).toEqual([units(3), other, units(2), other]);
  });

  it("may be 0 at a release, where nothing was used", () => {
    expect(read(0, 0)).toEqual([units(0), units(0), units(0), units(0)]);
    expect(read({ window: 0 }, 0)[0]).toEqual({ rate: 1, window: 0, quota: 1 });
    expect(() => read(0)).toThrow(RangeError);
  });

  it.each([
    ["a fraction", 1.5, RangeError, "got 1.5"],
    ["negative", -1, RangeError, "got -1"],
    ["not a number", Number.NaN, RangeError, "got NaN"],
    ["without bound", Number.POSITIVE_INFINITY, RangeError, "got Infinity"],
    ["too large", 10_000_001, RangeError, "from 1 to 10000000;"],
    [
      "of a limit that does not exist here",
      { "proxy:2": 1 },
      RangeError,
      "Known here: host, intent, proxy:1, global, rate",
    ],
    ["a fraction in a record", { window: 0.5 }, RangeError, "cost.window"],
    ["text in a record", { host: "2" }, TypeError, "cost.host"],
    ["undefined in a record", { host: undefined }, TypeError, "cost.host"],
    ["text", "2", TypeError, "got 2"],
    ["null", null, TypeError, "got null"],
  ] as const)("is refused when it is %s, with its name and value", (_, value, type, message) => {
    expect(() => read(untyped(value))).toThrow(type);
    expect(() => read(untyped(value))).toThrow(message);
  });

  it.each([
    ["a.example", 5, "burst is 4"],
    ["api.example", 7, "its smallest window holds 6"],
    [{ host: "api.example", intent: "search" }, { quota: 4 }, "its quota is 3"],
    [{ host: "api.example", scopes: ["key:abc"] }, { "key:abc": 6 }, 'key:abc of "api.example"'],
  ])("that can never fit is refused with the limit that says so: %o", (target, cost, message) => {
    const { ledger, demand } = setup();
    expect(() => costOf(ledger, demand(target), cost)).toThrow(RangeError);
    expect(() => costOf(ledger, demand(target), cost)).toThrow(message);
  });

  it("may be all that a limit holds", () => {
    const { ledger, demand } = setup();
    expect(costOf(ledger, demand("a.example"), 4)).toEqual(units(4));
    expect(costOf(ledger, demand("api.example"), { window: 6 })).toHaveLength(2);
  });
});
