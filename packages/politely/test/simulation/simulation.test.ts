import { describe, expect, it } from "vitest";
import { judge } from "./judge.js";
import { scenarioOf } from "./scenario.js";
import { play } from "./world.js";

// One run again, with all that was sent and heard: SIM_SEED=288 SIM_LOG=1. Many more: SIM_SEEDS=100000, from SIM_SEED on.
const { SIM_SEED, SIM_SEEDS, SIM_LOG } = process.env;
const first = Number(SIM_SEED ?? 1);
const count = Number(SIM_SEEDS ?? (SIM_SEED === undefined ? 2000 : 1));

describe("processes, a store and a network that delays, reorders, loses, doubles and cuts", () => {
  it(`keep every limit and lose nobody in ${count} runs, from seed ${first} on`, async () => {
    const bad: string[] = [];
    for (let seed = first; seed < first + count; seed++) {
      const faults = judge(await play(scenarioOf(seed), { isLogged: SIM_LOG !== undefined }));
      if (faults.length > 0) bad.push(`SIM_SEED=${seed}: ${faults.slice(0, 3).join("\n  ").slice(0, 600)}`);
    }
    expect(bad.slice(0, 10).join("\n"), `${bad.length} of ${count} runs`).toBe("");
  }, 3_600_000);

  it("do the same in each run of a seed", async () => {
    for (let seed = 1; seed <= 40; seed++) {
      const { lines } = await play(scenarioOf(seed));
      expect((await play(scenarioOf(seed))).lines, `seed ${seed}`).toEqual(lines);
    }
  });
});
