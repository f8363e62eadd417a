import { afterAll, beforeAll, describe, it } from "vitest";
import { dynamodbCells, dynamodbStore } from "../../src/stores/dynamodb.js";
import { storeSuite } from "../../src/testing/storeSuite.js";
import { type DynamodbServer, dynamodbClient, startDynamodb } from "../servers/dynamodb.js";
import { cellsSuite, spoilIn } from "./cellsSuite.js";
import { describeClock } from "./dynamodb/clock.js";
import { describeErrors } from "./dynamodb/errors.js";
import { describeRequests } from "./dynamodb/requests.js";

/** Java takes its time on a busy machine. */
const startWithinMs = 60_000;

// One server for everything: it takes seconds to start.
let server: DynamodbServer;
beforeAll(async () => {
  server = await startDynamodb();
}, startWithinMs);
afterAll(() => server.stop());

cellsSuite(
  "DynamoDB",
  async () => {
    const clients = [dynamodbClient(server.endpoint), dynamodbClient(server.endpoint)];
    const [cells, others] = clients.map((client) => dynamodbCells(client, { table: "politely-suite" }));
    await cells.createTable();
    return {
      cells,
      another: () => Promise.resolve(others),
      close: () => {
        for (const client of clients) client.destroy();
        return Promise.resolve();
      },
    };
  },
  { skewUs: 100_000 },
);

describe("DynamoDB as a store", () => {
  // Their clocks take a second to know the time, so that all cases share two clients and one table; each has keys of its own.
  let opened: ReturnType<typeof openBoth> | undefined;
  const openBoth = async () => {
    const clients = [dynamodbClient(server.endpoint), dynamodbClient(server.endpoint)];
    const [store, other] = clients.map((client) => dynamodbStore(client, { table: "politely-store-suite" }));
    await store.createTable();
    const spoil = spoilIn(dynamodbCells(clients[0], { table: "politely-store-suite" }));
    return { clients, store, other, spoil };
  };
  const open = async () => {
    opened ??= openBoth();
    const { store, other, spoil } = await opened;
    return { store, another: async () => other, spoil, close: async () => undefined };
  };
  afterAll(async () => {
    for (const client of (await opened)?.clients ?? []) client.destroy();
  });
  it.each(storeSuite("DynamoDB", open).map(({ title, run }) => [title, run] as const))("%s", (_title, run) => run());
});

describeRequests(() => server);
describeErrors(() => server);
describeClock(() => server);
