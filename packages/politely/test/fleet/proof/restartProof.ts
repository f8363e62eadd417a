import { expect, it } from "vitest";
import { allStart, comes, comesWithinMs, type Ground, startWorkers } from "./ground.js";
import { joinPlaces } from "./joinPlaces.js";
import { type Book, policyOf, violationsOf } from "./numbers.js";
import type { ServedPlace } from "./places.js";

const restarts = 2;

/** The server ends and comes back with all it knew. */
export function restartProof(
  ground: () => Ground & { readonly place: ServedPlace<{ restart(): Promise<void> }> },
): void {
  it("keeps every limit while the server restarts, and goes on by itself", async () => {
    const host = "restart.test";
    const book: Book = {
      permitTtlMs: 2_000,
      hosts: {
        [host]: { rate: { count: 20, perMs: 1_000, burst: 5 }, windows: [{ count: 30, perMs: 2_000 }], places: 4 },
      },
    };
    const members = ["a", "b"].map((id) => ({ id }));
    const loads = [{ host, callers: 4, holdMs: [0, 40] }];
    const input = { policy: policyOf(book), options: { name: "server restart", outage: "closed" }, loads };
    await using fleet = await startWorkers(ground(), members, input);
    fleet.go();
    for (const { id } of members) await comes(fleet, "start", id, 5);
    for (let count = 0; count < restarts; count++) {
      await ground().place.server.restart();
      await allStart(fleet, ["a", "b"]);
    }
    const entries = await fleet.finish(comesWithinMs);
    expect(
      violationsOf(joinPlaces(entries, book.permitTtlMs * 1_000, { isCut: true }), book),
      "a limit was broken",
    ).toEqual([]);
    for (const { code } of entries.filter(({ type }) => type === "refused")) expect(code).toBe("POLITELY_STORE");
  });
}
