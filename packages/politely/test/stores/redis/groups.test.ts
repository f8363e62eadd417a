import fc from "fast-check";
import { Redis } from "ioredis";
import { describe, expect, it } from "vitest";
import type { RecordOperation } from "../../../src/shared/operation.js";
import { cellStore } from "../../../src/stores/cellStore.js";
import { scriptTexts } from "../../../src/stores/redis/scripts.js";
import { scriptedStore } from "../../../src/stores/redis.js";
import { keyOf } from "../../../src/testing/store/operations.js";
import { seeded } from "../../laws/seeded.js";
import { startRedis } from "../../servers/redis.js";
import { cellsOn } from "./cellsOn.js";

describe("groups of starts in an operation", () => {
  const second = 1_000_000;
  const firstUs = 1_800_000_000 * second;
  const host = keyOf({
    rateCount: 3,
    ratePerUs: second,
    burst: 500,
    windows: [40, 60 * second, 1, 300, 3_600 * second, 1_000],
  });
  const whole = keyOf({ windows: [90, 10 * second, 1], quota: 1_000, calendar: "day UTC", fromAnswer: true });
  const period = { index: 20_833, fromUs: firstUs, untilUs: firstUs + 86_400 * second };
  const keys = [host, { ...whole, period, cost: { rate: 1, window: 2, quota: 3 } }];
  const few = fc.nat({ max: 30 });
  const spent = fc.record({ rate: few, window: few, quota: few });
  const group = fc.record({
    ageUs: fc.nat({ max: 90 * second }),
    count: fc.nat({ max: 50 }),
    units: fc.tuple(spent, spent),
  });
  const records = fc.array(
    fc.record({
      stepUs: fc.nat({ max: 40 * second }),
      groups: fc.array(group, { maxLength: 8 }),
      form: fc.constantFrom("ages" as const, "counts" as const, "units" as const),
    }),
    { minLength: 1, maxLength: 8 },
  );

  function operationOf(
    { groups, form }: typeof records extends fc.Arbitrary<(infer One)[]> ? One : never,
    sequence: number,
  ): RecordOperation {
    const sorted = groups.toSorted((one, other) => other.ageUs - one.ageUs);
    const plain = { kind: "record", asker: "p:1", sequence, keys, agesUs: sorted.map(({ ageUs }) => ageUs) } as const;
    if (form === "ages") return plain;
    const counted = { ...plain, counts: sorted.map(({ count }) => count) };
    return form === "counts" ? counted : { ...counted, units: sorted.map(({ units }) => units) };
  }

  it("count as that many operations of one start would", async () => {
    let nowUs = firstUs;
    const [one, many] = [cellStore(cellsOn(() => nowUs)), cellStore(cellsOn(() => nowUs))];
    const agesUs = [9 * second, second];
    await one.transact(["a", "b"], { kind: "record", asker: "", sequence: 1, keys, agesUs, counts: [7, 20] });
    const each = [...Array<number>(7).fill(agesUs[0]), ...Array<number>(20).fill(agesUs[1])];
    await many.transact(["a", "b"], { kind: "record", asker: "", sequence: 1, keys, agesUs: each });
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
    const texts = scriptTexts('redis.call("HMGET", "{clock}", "s", "us")');
    let histories = 0;
    const play = async (steps: typeof records extends fc.Arbitrary<infer Steps> ? Steps : never): Promise<void> => {
      let nowUs = firstUs;
      const script = scriptedStore(client, { prefix: `{${++histories}}:` }, texts);
      const core = cellStore(cellsOn(() => nowUs));
      for (const [sequence, step] of steps.entries()) {
        nowUs += step.stepUs;
        await client.hset("{clock}", "s", Math.floor(nowUs / second), "us", nowUs % second);
        for (const operation of [operationOf(step, sequence + 1), { kind: "look", keys } as const]) {
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
