import { describe, expect, it } from "vitest";
import { dynamodbCells } from "../../../src/stores/dynamodb.js";
import { dynamodbClient } from "../../servers/dynamodb.js";
import { groundOf } from "./ground.js";
import { dynamodbPlace } from "./places.js";
import { proveFaults, proveFleet } from "./proveFleet.js";
import { restartProof } from "./restartProof.js";

// Side by side, since most of their time is waiting, and the longest first.
describe.concurrent("processes that share DynamoDB", () => {
  const ground = groundOf(() => dynamodbPlace());
  proveFaults("DynamoDB", ground);
  proveFleet("DynamoDB", ground, { isGentle: true });

  it("let one another in, though one of them writes the same item without a pause", async () => {
    const { table } = ground().address as { readonly table: string };
    const clients = [1, 2].map(() => dynamodbClient(ground().place.server.endpoint));
    const [busy, other] = clients.map((client) => dynamodbCells(client, { table }));
    const add = (cells: typeof busy): Promise<number> =>
      cells.change(["crowded"], ([value = "0"]) => {
        const next = Number(value) + 1;
        return { writes: [{ index: 0, value: String(next), ttlUs: 60_000_000 }], answer: next };
      });
    let isOver = false;
    let busyCount = 0;
    const without = (async (): Promise<void> => {
      for (; !isOver; busyCount++) await add(busy);
    })();
    for (let count = 0; count < 10; count++) await add(other);
    isOver = true;
    await without;
    // Whoever knows what is there first would win all races otherwise: a thousand to one.
    expect(busyCount).toBeLessThanOrEqual(500);
    for (const client of clients) client.destroy();
  });
});

describe("processes whose DynamoDB restarts", () => {
  restartProof(groundOf(() => dynamodbPlace({ hasFile: true })));
});
