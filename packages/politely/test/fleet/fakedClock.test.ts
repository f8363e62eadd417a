import { readdirSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type CompiledLibrary, compileLibrary } from "./compileLibrary.js";
import { fakedClock } from "./fakedClock.js";
import { startFleet } from "./startFleet.js";
import { until } from "./until.js";

const program = new URL("programs/sample.mjs", import.meta.url);
let library: CompiledLibrary;
beforeAll(async () => {
  library = await compileLibrary();
});
afterAll(() => library.remove());

describe("a member whose clock is off", () => {
  it("has another wall time than the rest, and the same monotonic time", async () => {
    const members = [{ id: "right" }, { id: "early", clockOffsetSec: 60 }, { id: "late", clockOffsetSec: -60 }];
    await using fleet = await startFleet({ library, program, members });
    const begun = () => fleet.log().filter(({ type }) => type === "began");
    const fromMs = Date.now();
    const fromUs = Number(process.hrtime.bigint() / 1_000n);
    fleet.go();
    await until("all have begun", 10_000, () => begun().length === 3);
    await fleet.finish(10_000);

    const tookMs = Date.now() - fromMs;
    const tookUs = Number(process.hrtime.bigint() / 1_000n) - fromUs;
    const offMs = new Map([
      ["right", 0],
      ["early", 60_000],
      ["late", -60_000],
    ]);
    for (const { member, wallMs, machineUs } of begun()) {
      const sinceMs = Number(wallMs) - fromMs - (offMs.get(member) ?? Number.NaN);
      // libfaketime reads its offset from a clock of its own, a little later.
      expect(Math.abs(sinceMs)).toBeLessThan(tookMs + 50);
      expect(machineUs).toBeGreaterThanOrEqual(fromUs);
      expect(machineUs).toBeLessThanOrEqual(fromUs + tookUs);
    }
  });

  it("leaves nothing in shared memory, even when it is killed", async () => {
    await using fleet = await startFleet({ library, program, members: [{ id: "a", clockOffsetSec: 60 }] });
    const ownFiles = () => readdirSync("/dev/shm").filter((name) => name.endsWith(`_${fleet.members[0].pid}`));
    expect(ownFiles().length).toBeGreaterThan(0);
    await fleet.kill("a");
    expect(ownFiles()).toEqual([]);
  });

  it("refuses an offset that is none", () => {
    expect(() => fakedClock(Number.NaN)).toThrow(RangeError);
  });
});
