import type { DynamoDB } from "@aws-sdk/client-dynamodb";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { exclusive } from "../../../src/lease.js";
import { type DynamodbStore, dynamodbStore } from "../../../src/stores/dynamodb.js";
import { type DynamodbServer, dynamodbClient, startDynamodb } from "../../servers/dynamodb.js";
import { faultyProxy } from "../../servers/faultyProxy.js";
import { many } from "../../verbs/support.js";
import { held } from "./rig.js";

const startWithinMs = 60_000;
const ttl = "5s";
const table = `politely-slow-way-${process.pid}`;
/** How long a request takes in each direction, and what the store may be behind. */
const ways = [
  { oneWayMs: 30, clockErrorMs: 100 },
  { oneWayMs: 100, clockErrorMs: 100 },
  { oneWayMs: 300, clockErrorMs: 100 },
  { oneWayMs: 300, clockErrorMs: 1_100 },
];
/** How well a holder knows the time depends on where in DynamoDB's second it begins, so they begin at different ones. */
const holdersOfEach = 3;

const pause = (ms: number): Promise<void> => new Promise((resolve) => void setTimeout(resolve, ms));

describe("a lease in DynamoDB whose holder is far away and then cut off", () => {
  let server: DynamodbServer;
  let client: DynamoDB;
  let near: DynamodbStore;
  beforeAll(async () => {
    server = await startDynamodb();
    client = dynamodbClient(server.endpoint);
    near = dynamodbStore(client, { table });
    await near.createTable();
    // From here on it knows the time.
    await held(await exclusive(near, "first", { ttl })).release();
  }, startWithinMs);
  afterAll(async () => {
    await client.deleteTable({ TableName: table });
    client.destroy();
    await server.stop();
  });

  /** For how long the first holder still believes in its lease when the next one has it. */
  async function overlapMs(name: string, { oneWayMs, clockErrorMs }: (typeof ways)[number]): Promise<number> {
    await using proxy = await faultyProxy({ host: "127.0.0.1", port: Number(new URL(server.endpoint).port) });
    proxy.delay(oneWayMs);
    const farClient = dynamodbClient(`http://127.0.0.1:${proxy.port}`);
    const far = dynamodbStore(farClient, { table, clockErrorMs });
    const lease = held(await exclusive(far, name, { ttl, label: "far" }));
    proxy.halfOpen();
    const lost = new Promise<number>((resolve) => {
      lease.signal.addEventListener("abort", () => resolve(performance.now()), { once: true });
    });
    const next = held(await exclusive(near, name, { ttl, label: "near", wait: "30s" }));
    const gotMs = performance.now();
    const overMs = await lost;
    await next.release();
    farClient.destroy();
    return overMs - gotMs;
  }

  it("is over for the holder before the next one has it, however slow the way", async () => {
    const tries = ways.flatMap((way) => many(holdersOfEach, (index) => ({ way, index })));
    const overlaps = await Promise.all(
      tries.map(async ({ way, index }) => {
        await pause((index * 1_000) / holdersOfEach);
        return { ...way, overlapMs: await overlapMs(`${way.oneWayMs} ${way.clockErrorMs} ${index}`, way) };
      }),
    );
    expect(overlaps.filter(({ overlapMs: bothMs }) => bothMs > 0)).toEqual([]);
  });
});
