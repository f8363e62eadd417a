import { afterAll, beforeAll } from "vitest";
import { dynamodbCells } from "../../src/stores/dynamodb.js";
import { type DynamodbServer, dynamodbClient, startDynamodb } from "../servers/dynamodb.js";
import { cellsSuite } from "./cellsSuite.js";
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

describeRequests(() => server);
describeErrors(() => server);
describeClock(() => server);
