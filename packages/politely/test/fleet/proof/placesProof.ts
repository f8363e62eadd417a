import { setTimeout as delay } from "node:timers/promises";
import { expect, it } from "vitest";
import { joinStarts } from "../joinStarts.js";
import { comes, comesWithinMs, type Ground, logged, startWorkers } from "./ground.js";

const ttlMs = 1_000;
/** How much later than promised a busy machine may do something. */
const slackMs = 2_000;
/** Between two looks of somebody who waits for a place. */
const pollMs = 250;
const host = "one.test";

/** One place, and what becomes of it when its holder is killed, stands still, or simply takes long. */
export function placesProof(ground: () => Ground): void {
  it("gives the place of a killed holder, and of one that stands still, to the next one within its lifetime, and takes no place back from those who lost it", async () => {
    const members = ["first", "second", "third"].map((id) => ({ id }));
    const input = {
      policy: { hosts: { [host]: { concurrency: 1, permitTtl: ttlMs } } },
      options: { name: "places", outage: "closed" },
    };
    await using fleet = await startWorkers(ground(), members, input);
    fleet.go();
    fleet.send("first", "acquire", { host });
    await comes(fleet, "start", "first");
    fleet.send("second", "acquire", { host });
    // Longer than the lifetime, so that it lives by being renewed.
    await delay(1.5 * ttlMs);
    expect(logged(fleet, "start", "second")).toEqual([]);
    await fleet.kill("first");
    const [killed] = logged(fleet, "killed", "first");
    const [taken] = await comes(fleet, "start", "second");
    // On the machine's clock, since nobody asked the store when the holder was killed.
    expect(taken.machineUs - killed.machineUs).toBeLessThanOrEqual((ttlMs + pollMs + slackMs) * 1_000);
    fleet.send("third", "acquire", { host });
    await fleet.pause("second");
    await comes(fleet, "start", "third");
    // It reads these when it goes on.
    fleet.send("second", "release");
    fleet.resume("second");
    await comes(fleet, "gave back", "second");
    fleet.send("second", "try", { host });
    expect(await comes(fleet, "tried")).toMatchObject([{ isGranted: false }]);
    fleet.send("third", "release");
    await comes(fleet, "gave back", "third");
    fleet.send("second", "try", { host });
    expect((await comes(fleet, "tried", "second", 2))[1]).toMatchObject({ isGranted: true });
    const tokens = joinStarts(await fleet.finish(comesWithinMs)).map(({ token = 0 }) => token);
    expect(tokens).toEqual(tokens.toSorted((a, b) => a - b));
    expect(new Set(tokens).size).toBe(4);
  });
}
