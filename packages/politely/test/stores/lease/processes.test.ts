import { Client } from "pg";
import { describe, vi } from "vitest";
import { dynamodbStore } from "../../../src/stores/dynamodb.js";
import { postgresStore } from "../../../src/stores/postgres.js";
import { dynamodbClient, startDynamodb } from "../../servers/dynamodb.js";
import { startPostgres } from "../../servers/postgres.js";
import { startRedis } from "../../servers/redis.js";
import { temporaryFile } from "../sqlite/temporaryFile.js";
import { crowdProof, lossProof, openPlaces } from "./leaseFleet.js";

const run = Math.trunc(Math.random() * 2 ** 30).toString(36);

const places = {
  async Redis() {
    // A server of its own, whatever REDIS_URL says: the names of the leases are the same in every run.
    const server = await startRedis({ args: [] });
    return { kind: "redis", address: { url: server.url }, close: () => server.stop() };
  },
  async PostgreSQL() {
    // Each of the hundred has a connection, or two.
    const server = await startPostgres({ settings: { max_connections: "300" } });
    const table = `politely_lease_${run}`;
    const client = new Client({ connectionString: server.url });
    await client.connect();
    await postgresStore(client, { table }).createTable();
    await client.end();
    return { kind: "postgres", address: { url: server.url, table }, close: () => server.stop() };
  },
  async DynamoDB() {
    const server = await startDynamodb();
    const { endpoint } = server;
    const table = `politely-lease-${run}`;
    const client = dynamodbClient(endpoint);
    await dynamodbStore(client, { table }).createTable();
    return {
      kind: "dynamodb",
      address: { endpoint, table },
      skewMs: 1_100,
      async close() {
        await client.deleteTable({ TableName: table });
        client.destroy();
        await server.stop();
      },
    };
  },
  async SQLite() {
    const file = temporaryFile();
    return { kind: "sqlite", address: { path: file.path }, close: async () => file[Symbol.dispose]() };
  },
};
const place = openPlaces(places);
// All that wait go side by side.
vi.setConfig({ maxConcurrency: 20 });

describe("leases of a crowd of processes", () => {
  crowdProof(Object.keys(places), place);
});

describe.concurrent.each(Object.keys(places))("a lease of processes over %s", (name) => {
  lossProof(() => place(name));
});
