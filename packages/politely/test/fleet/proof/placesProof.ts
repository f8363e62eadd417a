import { setTimeout as delay } from "node:timers/promises";
import { expect, it } from "vitest";
import { joinStarts } from "../joinStarts.js";
import { comes, comesWithinMs, type Ground, logged, startWorkers } from "./ground.js";

const ttlMs = 1_000;
/** How much later than promised a busy machine may do something. */
const slackMs = 2_000;
/** Between two looks of somebody who waits for a place. */
const pollMs = 250;

/** One place, and what becomes of it when its holder is killed, stands still, or simply takes long. */
export function placesProof(ground: () => Ground): void {
  const host = "one.test";
  const input = (name: string): Record<string, unknown> => ({
    policy: { hosts: { [host]: { concurrency: 1, permitTtl: ttlMs } } },
    options: { name, outage: "closed" },
  });

  it("gives the place of a killed holder to the next one within its lifetime", async () => {
    await using fleet = await startWorkers(ground(), [{ id: "holder" }, { id: "next" }], input("killed holder"));
    fleet.go();
    fleet.send("holder", "acquire", { host });
    const [held] = await comes(fleet, "start", "holder");
    fleet.send("next", "acquire", { host });
    // Longer than the lifetime, so that it lives by being renewed.
    await delay(2 * ttlMs);
    expect(logged(fleet, "start", "next")).toEqual([]);
    await fleet.kill("holder");
    const [killed] = logged(fleet, "killed", "holder");
    const [taken] = await comes(fleet, "start", "next");
    // On the machine's clock, since nobody asked the store when the holder was killed.
    expect(taken.machineUs - killed.machineUs).toBeLessThanOrEqual((ttlMs + pollMs + slackMs) * 1_000);
    expect(taken.token).toBeGreaterThan(held.token as number);
    fleet.send("next", "release");
    await fleet.finish(comesWithinMs);
  });

  it("gives the place of a holder that stands still to the next one, and it cannot be given back from there", async () => {
    const members = [{ id: "holder" }, { id: "next" }, { id: "third" }];
    await using fleet = await startWorkers(ground(), members, input("paused holder"));
    fleet.go();
    fleet.send("holder", "acquire", { host });
    await comes(fleet, "start", "holder");
    fleet.send("next", "acquire", { host });
    await fleet.pause("holder");
    await comes(fleet, "start", "next");
    fleet.send("third", "acquire", { host });
    // It reads this when it goes on.
    fleet.send("holder", "release");
    fleet.resume("holder");
    await comes(fleet, "gave back", "holder");
    await delay(2 * pollMs);
    expect(logged(fleet, "start", "third")).toEqual([]);
    fleet.send("next", "release");
    await comes(fleet, "start", "third");
    fleet.send("third", "release");
    const starts = joinStarts(await fleet.finish(comesWithinMs));
    const [, second, third] = starts.toSorted((a, b) => a.startedUs - b.startedUs);
    expect(third.startedUs).toBeGreaterThanOrEqual(second.releasedUs ?? Number.POSITIVE_INFINITY);
  });
}
