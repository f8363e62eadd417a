import fc from "fast-check";
import { Redis } from "ioredis";
import { describe, expect, it } from "vitest";
import { cellStore } from "../../../src/stores/cellStore.js";
import type { RecordOperation } from "../../../src/stores/operations.js";
import { scriptText } from "../../../src/stores/redis/script.js";
import { scriptedStore } from "../../../src/stores/redis.js";
import { seeded } from "../../laws/seeded.js";
import { startRedis } from "../../servers/redis.js";
import { cellsOn } from "./cellsOn.js";
import { keyOf } from "./rules.js";

describe("groups of starts in an operation", () => {
  const second = 1_000_000;
  const firstUs = 1_800_000_000 * second;
  const host = keyOf({
    rateCount: 3,
    ratePerUs: second,
    burst: 500,
    windows: [
      { count: 40, perUs: 60 * second, grainUs: 1 },
      { count: 300, perUs: 3_600 * second, grainUs: 1_000 },
    ],
  });
  const quota = { count: 1_000, per: "day", timeZone: "UTC" } as const;
  const whole = keyOf({ windows: [{ count: 90, perUs: 10 * second, grainUs: 1 }], quota, fromAnswer: true });
  const keys = [host, { ...whole, cost: { rate: 1, window: 2, quota: 3 } }];
  const terms = { kind: "record", isAgain: false, keys, meant: 0, random: 0 } as const;
  const records = fc.array(
    fc.record({
      stepUs: fc.nat({ max: 40 * second }),
      groups: fc.array(fc.record({ ageUs: fc.nat({ max: 90 * second }), count: fc.nat({ max: 50 }) }), {
        maxLength: 8,
      }),
      owed: fc.option(fc.tuple(fc.nat({ max: 9 }), fc.nat({ max: 9 })), { nil: undefined }),
    }),
    { minLength: 1, maxLength: 8 },
  );
  type Step = typeof records extends fc.Arbitrary<(infer One)[]> ? One : never;

  function operationOf({ groups, owed }: Step, number: number): RecordOperation {
    const sorted = groups.toSorted((one, other) => other.ageUs - one.ageUs);
    const starts = { agesUs: sorted.map(({ ageUs }) => ageUs), counts: sorted.map(({ count }) => count) };
    return { ...terms, asker: "p.1", number, ...starts, owed };
  }

  it("count as that many operations of one start would", async () => {
    let nowUs = firstUs;
    const [one, many] = [cellStore(cellsOn(() => nowUs)), cellStore(cellsOn(() => nowUs))];
    const agesUs = [9 * second, second];
    await one.transact(["a", "b"], { ...terms, asker: "p.1", number: 1, agesUs, counts: [7, 20] });
    const each = [...Array<number>(7).fill(agesUs[0]), ...Array<number>(20).fill(agesUs[1])];
    await many.transact(["a", "b"], { ...terms, asker: "p.1", number: 1, agesUs: each, counts: each.map(() => 1) });
    for (const stepUs of [0, 2 * second, 30 * second, 25 * second]) {
      nowUs += stepUs;
      const seen = await one.transact(["a", "b"], { kind: "look", keys });
      expect(seen).toEqual(await many.transact(["a", "b"], { kind: "look", keys }));
      expect(seen.keys[0].starts).toBe(27);
    }
  });

  it("count in the script as in the core", { timeout: 60_000 }, async () => {
    await using server = await startRedis({ args: [] });
    const client = new Redis(server.url);
    const texts = scriptText('redis.call("HMGET", "{clock}", "s", "us")');
    let histories = 0;
    const play = async (steps: readonly Step[]): Promise<void> => {
      let nowUs = firstUs;
      const script = scriptedStore(client, { prefix: `{${++histories}}:` }, texts);
      const core = cellStore(cellsOn(() => nowUs));
      for (const [index, step] of steps.entries()) {
        nowUs += step.stepUs;
        await client.hset("{clock}", "s", Math.floor(nowUs / second), "us", nowUs % second);
        for (const operation of [operationOf(step, index + 1), { kind: "look", keys } as const]) {
          const [got, expected] = [script, core].map(
            (store) => store.transact(["a", "b"], operation) as Promise<object>,
          );
          expect({ operation, reply: await got }).toEqual({ operation, reply: await expected });
        }
      }
    };
    try {
      await fc.assert(fc.asyncProperty(records, play), { ...seeded(150), endOnFailure: true });
    } finally {
      client.disconnect();
    }
  });
});
