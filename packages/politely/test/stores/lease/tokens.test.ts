import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { cellStore } from "../../../src/stores/cellStore.js";
import type { Cells } from "../../../src/stores/cells.js";
import { decideLease } from "../../../src/stores/decideLease.js";
import { memoryCells } from "../../../src/stores/memory.js";
import { sqliteCells } from "../../../src/stores/sqlite.js";
import { seeded } from "../../laws/seeded.js";
import { temporaryFile } from "../sqlite/temporaryFile.js";

const second = 1_000_000;
const hour = 3_600 * second;
const dateUs = Date.UTC(2026, 0, 1) * 1000;

/** One thing that happens to a lease. */
type Step =
  | { readonly kind: "take"; readonly release: boolean; readonly wallUs: number; readonly behindUs: number }
  /** The store's clock goes on, or is set back. */
  | { readonly kind: "time"; readonly byUs: number };

const anyTake = fc.record({
  kind: fc.constant("take" as const),
  release: fc.boolean(),
  // What a client's own clock says may be years off.
  wallUs: fc.oneof(fc.integer({ min: -10 * hour, max: 10 * hour }), fc.constantFrom(-dateUs, 1000 * hour)),
  behindUs: fc.integer({ min: 0, max: 2 * second }),
});
const anyTime = fc.record({
  kind: fc.constant("time" as const),
  byUs: fc.oneof(fc.integer({ min: 0, max: 2 * second }), fc.integer({ min: 0, max: 5 * hour })),
});
const anySteps = fc.array(fc.oneof(anyTake, anyTime), { minLength: 2, maxLength: 30 });

/** Fails unless every new holder has a larger token than all before, those of other names included where they share one count. */
async function expectGrowing(steps: readonly Step[], cells: Cells, clock: { us: number }): Promise<void> {
  const store = cellStore(cells);
  let largest = 0;
  for (const [index, step] of steps.entries()) {
    if (step.kind === "time") {
      clock.us += step.byUs;
      continue;
    }
    const holder = { holder: `holder ${index}`, label: "", ttlUs: second, epochUs: dateUs + step.wallUs };
    const { isHeld, token } = await store.transact(["lease"], { kind: "lease", act: "take", ...holder });
    if (!isHeld) continue;
    expect(token).toBeGreaterThan(largest);
    largest = token;
    if (step.release) await store.transact(["lease"], { kind: "lease", act: "release", ...holder });
  }
}

describe("the tokens of a lease", () => {
  it("grow on a store with a date, also after the lease was forgotten", async () => {
    await fc.assert(
      fc.asyncProperty(anySteps, async (steps) => {
        const clock = { us: dateUs };
        await expectGrowing(steps, { ...memoryCells(() => clock.us), timeline: "epoch" }, clock);
      }),
      seeded(300),
    );
  });

  it("grow on a store without a date, also after the lease was forgotten, wherever the clocks of processes are", async () => {
    await fc.assert(
      fc.asyncProperty(anySteps, async (steps) => {
        const clock = { us: 0 };
        await expectGrowing(
          steps,
          memoryCells(() => clock.us),
          clock,
        );
      }),
      seeded(300),
    );
  });

  it("grow in a SQLite file over restarts of the machine, after everything else in it is gone", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(anySteps, { minLength: 2, maxLength: 3 }), async (boots) => {
        using file = temporaryFile();
        let largest = 0;
        for (const [boot, steps] of boots.entries()) {
          let us = 0;
          const store = cellStore(sqliteCells(file.open(), {}, { nowUs: () => us, bootId: `boot ${boot}` }));
          for (const [index, step] of steps.entries()) {
            us += step.kind === "time" ? step.byUs : 0;
            if (step.kind === "time") continue;
            const holder = { holder: `${boot} ${index}`, label: "", ttlUs: second, epochUs: dateUs + step.wallUs };
            const reply = await store.transact([`lease ${index % 2}`], { kind: "lease", act: "take", ...holder });
            if (!reply.isHeld) continue;
            expect(reply.token).toBeGreaterThan(largest);
            largest = reply.token;
          }
        }
      }),
      seeded(15),
    );
  });

  it("grow where clients know the time of the store to two seconds only, and it forgets what has expired", () => {
    fc.assert(
      fc.property(anySteps, (steps) => {
        let us = dateUs;
        let cell: { readonly text: string; readonly untilUs: number } | undefined;
        let largest = 0;
        for (const [index, step] of steps.entries()) {
          if (step.kind === "time") {
            us += step.byUs;
            continue;
          }
          const nowUs = us - step.behindUs;
          // It is swept a minute after its end by the server's own clock.
          if (cell !== undefined && cell.untilUs + 60 * second < us) cell = undefined;
          const known = cell !== undefined && cell.untilUs > nowUs ? cell.text : undefined;
          const ask = { kind: "lease", act: "take", label: "", ttlUs: second, epochUs: dateUs + step.wallUs } as const;
          const time = { isDate: true, errorUs: 2 * second, statedUs: second / 10 };
          const { reply, text, keepForUs } = decideLease(known, { ...ask, holder: `h${index}` }, nowUs, "lease", time);
          if (text !== undefined) cell = { text, untilUs: nowUs + keepForUs };
          if (!reply.isHeld) continue;
          expect(reply.token).toBeGreaterThan(largest);
          largest = reply.token;
        }
      }),
      seeded(1_000),
    );
  });

  it("grow on every timeline, for holders who take, renew, release and look, by clocks that are behind or set back by up to an hour", async () => {
    const anyAct = fc.record({
      act: fc.constantFrom("take", "take", "renew", "release", "look"),
      who: fc.nat(3),
      wallUs: fc.constantFrom(0, -dateUs, 1000 * hour),
      behindUs: fc.nat(2 * second),
      // What goes back goes on from there: an hour in all is what a store remembers a lease for.
      byUs: fc.oneof(fc.nat(2 * second), fc.nat(5 * hour), fc.integer({ min: -hour / 40, max: 0 })),
    });
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom("epoch", "machine"),
        fc.array(anyAct, { maxLength: 40 }),
        async (timeline, acts) => {
          let [us, behindUs, largest] = [dateUs, 0, 0];
          const held = new Map<number, number>();
          const memory = memoryCells(() => us);
          const store = cellStore({
            ...memory,
            timeline,
            clockErrorUs: second / 10,
            change: (keys, change) =>
              memory.change(keys, (values, nowUs) => change(values, nowUs - behindUs, 2 * second)),
          });
          for (const { act, byUs, wallUs, who, ...step } of acts) {
            us += byUs;
            behindUs = step.behindUs;
            const holder = { holder: `h${who}`, label: "", ttlUs: second, epochUs: dateUs + wallUs };
            const { isHeld, token } = await store.transact(["lease"], { kind: "lease", act, ...holder });
            if (!isHeld || act === "look") continue;
            // Whoever has it already keeps its token; a new holder has a larger one than anybody before.
            if (held.get(who) !== token) expect(token).toBeGreaterThan(largest);
            held.set(who, token);
            largest = Math.max(largest, token);
          }
        },
      ),
      seeded(1_000),
    );
  });

  it("grow on a store with a date whose clock was ahead for a while", async () => {
    const clock = { us: dateUs };
    const steps: Step[] = [0, 48 * hour, -48 * hour, 2 * hour, 3 * hour].flatMap((byUs) => [
      { kind: "time", byUs },
      { kind: "take", release: true, wallUs: 0, behindUs: 0 },
    ]);
    await expectGrowing(steps, { ...memoryCells(() => clock.us), timeline: "epoch" }, clock);
  });
});
