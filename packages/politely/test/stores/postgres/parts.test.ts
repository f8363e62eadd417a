import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Job, play, type Row } from "../../../src/stores/postgres/parts.js";
import { seeded } from "../../laws/seeded.js";

const nowUs = 1_000_000;
const names = ["a", "b", "c", "d", "e", "f", "g", "h"];

interface Step {
  readonly names: readonly string[];
  /** Indices of what it writes; undefined: it throws. */
  readonly writes: readonly number[] | undefined;
}

const anyStep: fc.Arbitrary<Step> = fc
  .shuffledSubarray(names, { minLength: 1, maxLength: 3 })
  .chain((chosen) =>
    fc.record({ names: fc.constant(chosen), writes: fc.option(fc.subarray([...chosen.keys()]), { nil: undefined }) }),
  );

/** A job that adds its number to what it writes, and answers with what it saw. */
function jobOf({ names: keys, writes }: Step, number: number): Job {
  return {
    keys,
    names: keys,
    change(values) {
      if (writes === undefined) throw new Error(`job ${number}`);
      return {
        writes: writes.map((index) => ({ index, value: `${values[index] ?? ""}${number};`, ttlUs: 1 + number })),
        answer: values,
      };
    },
  };
}

describe("jobs carried out on rows that were read together", () => {
  it("have the outcomes that they have one after the other, and parts that share no row", () => {
    fc.assert(
      fc.property(fc.array(anyStep, { maxLength: 12 }), fc.subarray(names), (steps, existing) => {
        const rows = new Map(existing.map((name) => [name, row(`${name}:`)]));
        const jobs = steps.map(jobOf);
        const parts = play(jobs, rows, nowUs);

        const values = new Map<string, string | undefined>(existing.map((name) => [name, `${name}:`]));
        const expected = steps.map((step, number) => {
          if (step.writes === undefined) return { error: new Error(`job ${number}`) };
          const answer = step.names.map((name) => values.get(name));
          for (const index of step.writes) values.set(step.names[index], `${answer[index] ?? ""}${number};`);
          return { answer };
        });
        const outcomes = new Map(parts.flatMap((part) => part.outcomes.map(({ job, outcome }) => [job, outcome])));
        expect(jobs.map((job) => outcomes.get(job))).toEqual(expected);

        const written = new Map(parts.flatMap(({ writes }) => [...writes]));
        for (const [name, { value }] of written) expect(value).toBe(values.get(name));
        const changed = names.filter((name) => values.get(name) !== (rows.has(name) ? `${name}:` : undefined));
        expect([...written.keys()].sort()).toEqual(changed);

        for (const part of parts) {
          const own = new Set(part.outcomes.flatMap(({ job }) => job.names));
          expect(part.names).toEqual(own);
          expect([...part.writes.keys()].every((name) => own.has(name))).toBe(true);
        }
        expect(parts.flatMap((part) => [...part.names]).length).toBe(new Set(steps.flatMap((step) => step.names)).size);
      }),
      seeded(500),
    );
  });

  it("see an expired row as missing from the very instant of its expiry", () => {
    const seen = [nowUs + 1, nowUs, nowUs - 1, 0].map((expiresUs) => {
      const job = jobOf({ names: ["a"], writes: [] }, 0);
      const [part] = play([job], new Map([["a", row("x", expiresUs)]]), nowUs);
      return part.outcomes[0].outcome;
    });
    expect(seen).toEqual([["x"], [undefined], [undefined], [undefined]].map((answer) => ({ answer })));
  });

  it("have an outcome also when they are about no row at all", () => {
    const [part] = play([jobOf({ names: [], writes: [] }, 0)], new Map(), nowUs);
    expect(part.outcomes.map(({ outcome }) => outcome)).toEqual([{ answer: [] }]);
  });
});

function row(value: string, expiresUs = nowUs + 1): Row {
  return { version: "1", value, expiresUs };
}
