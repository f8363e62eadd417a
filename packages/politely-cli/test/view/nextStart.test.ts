import { type Limits, politely } from "politely";
import { VirtualClock } from "politely/testing";
import { describe, expect, it } from "vitest";
import { nextStartMs } from "../../src/view/nextStart.js";

const cases: readonly (readonly [string, Limits, number])[] = [
  ["a gap", { minDelay: "500ms" }, 500],
  ["a bucket", { rate: "2/s", burst: 3 }, 500],
  ["a gap after the answer", { minDelay: "500ms", countFrom: "answer" }, 500],
];

describe.each(cases)("the next start of twenty that wait for %s", (_title, limits, gapMs) => {
  it("is at most one gap away, and never told too soon", async () => {
    const clock = new VirtualClock();
    const polite = politely({ default: limits }, { clock });
    const starts: number[] = [];
    const all = Array.from({ length: 20 }, () => polite.run("a.example", () => starts.push(clock.now())));
    await clock.advance(1_200);
    while (starts.length < 20) {
      const before = starts.length;
      const atMs = clock.now();
      const toldMs = nextStartMs(polite.explain("a.example"));
      expect(toldMs).toBeLessThanOrEqual(gapMs);
      await clock.advance(70);
      const startedMs = starts[before] ?? 0;
      expect(atMs + toldMs + 0.01).toBeGreaterThanOrEqual(startedMs);
    }
    await Promise.all(all);
  });
});
