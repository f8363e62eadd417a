import { expect, it } from "vitest";
import { Fleet } from "../fleet.js";

it("keeps the place of a start that was granted ahead, also when the process names its places before it starts", async () => {
  // Places are named every 333 ms; the second start is granted some milliseconds before its instant.
  for (let perMs = 330; perMs <= 345; perMs++) {
    const fleet = new Fleet();
    const limits = { rate: { count: 1, per: perMs }, concurrency: 2, permitTtl: "1s" } as const;
    const [first, second] = [fleet.add(limits), fleet.add(limits)];
    void fleet.demand(first, 2, { holdMs: 5_000 });
    await fleet.clock.advance(400);
    expect(fleet.starts).toHaveLength(2);
    void fleet.demand(second, 1, { holdMs: 5_000 });
    await fleet.clock.advance(2_000);
    expect(fleet.starts, `a start each ${perMs} ms`).toHaveLength(2);
  }
});
