import { setTimeout as delay } from "node:timers/promises";
import fc from "fast-check";
import { expect, it } from "vitest";
import { threadMemory } from "../../../src/stores/threads.js";
import { seeded } from "../../laws/seeded.js";
import { compileLibrary } from "../compileLibrary.js";
import { until } from "../until.js";
import { comesWithinMs } from "./ground.js";
import { joinPlaces } from "./joinPlaces.js";
import { policyOf, violationsOf } from "./numbers.js";
import { rough } from "./storm.js";
import { ThreadFleet } from "./threadFleet.js";

const crew = 4;

it("threads of one process keep every limit together while some are terminated at random and others come", async () => {
  const { seed = 1 } = seeded(1);
  using library = await compileLibrary();
  const { book, callers, holdMs } = rough;
  const input = {
    seed,
    policy: policyOf(book),
    options: { outage: "closed" },
    loads: Object.keys(book.hosts).map((host) => ({ host, callers, holdMs, unused: 0.1 })),
  };
  await using threads = new ThreadFleet(library.url, threadMemory(), input);
  await Promise.all(Array.from({ length: crew }, (_, index) => threads.add(`first-${index}`)));
  const blows = fc.record({ afterMs: fc.noBias(fc.integer({ min: 20, max: 400 })), whom: fc.noBias(fc.nat(99)) });
  const [storm] = fc.sample(fc.array(blows, { minLength: 10, maxLength: 10 }), { seed, numRuns: 1 });
  for (const [index, { afterMs, whom }] of storm.entries()) {
    await delay(afterMs);
    const { ids } = threads;
    await Promise.all([threads.terminate(ids[whom % ids.length]), threads.add(`late-${index}`)]);
  }
  const calmUs = Number(process.hrtime.bigint() / 1_000n);
  await until("everybody who is left starts something", comesWithinMs, () =>
    threads.ids.every((id) => threads.entries.some(isStartOf(id, calmUs))),
  );
  const entries = await threads.finish(comesWithinMs);
  const starts = joinPlaces(entries, book.permitTtlMs * 1_000);
  expect(violationsOf(starts, book), "a limit was broken").toEqual([]);
  expect(entries.filter(({ type }) => type === "refused")).toEqual([]);
  for (const host of Object.keys(book.hosts)) expect(starts.filter(({ key }) => key === host)).not.toEqual([]);
});

function isStartOf(id: string, sinceUs: number): (entry: ThreadFleet["entries"][number]) => boolean {
  return ({ type, member, machineUs }) => type === "start" && member === id && machineUs > sinceUs;
}
