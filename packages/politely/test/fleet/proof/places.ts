import { Client } from "pg";
import { dynamodbStore } from "../../../src/stores/dynamodb.js";
import { postgresStore } from "../../../src/stores/postgres.js";
import { type DynamodbServer, dynamodbClient, startDynamodb } from "../../servers/dynamodb.js";
import { type PostgresServer, startPostgres } from "../../servers/postgres.js";
import { startRedis } from "../../servers/redis.js";
import { startRedisCluster } from "../../servers/redisCluster.js";
import type { RedisServer } from "../../servers/redisProcess.js";
import { temporaryFile } from "../../stores/sqlite/temporaryFile.js";

/** A store that processes can share. */
export interface Place {
  /** Which entry of `openStore.mjs` opens it. */
  readonly kind: string;
  /** What that entry needs to find it; it has to survive JSON. */
  readonly address: Readonly<Record<string, unknown>>;
  close(): Promise<void>;
}

/** A place behind a server that listens on a port. */
export interface ServedPlace<Server> extends Place {
  readonly server: Server;
  readonly port: number;
  /** The address of the same store behind another port. */
  addressAt(port: number): Place["address"];
}

const run = Math.trunc(Math.random() * 2 ** 30).toString(36);

/** A file that nobody else has. */
export async function sqlitePlace(): Promise<Place> {
  const file = temporaryFile();
  // Whoever opens a new file while another process switches it to its log finds it locked.
  file.open().exec("PRAGMA journal_mode = WAL");
  return { kind: "sqlite", address: { path: file.path }, close: async () => file[Symbol.dispose]() };
}

/** A table in PostgreSQL that nobody else has. */
export async function postgresPlace(): Promise<ServedPlace<PostgresServer>> {
  const server = await startPostgres();
  const table = `politely_proof_${run}`;
  const client = new Client({ connectionString: server.url });
  await client.connect();
  await postgresStore(client, { table }).createTable();
  await client.end();
  const addressAt = (port: number): Place["address"] => {
    const url = new URL(server.url);
    url.port = String(port);
    return { url: url.href, table };
  };
  const port = Number(new URL(server.url).port || 5432);
  return { kind: "postgres", address: addressAt(port), server, port, addressAt, close: () => server.stop() };
}

/** A table in DynamoDB that nobody else has. With `hasFile` it outlives a restart of the server. */
export async function dynamodbPlace({ hasFile = false } = {}): Promise<ServedPlace<DynamodbServer>> {
  const server = await startDynamodb({ hasFile });
  const table = `politely-proof-${run}`;
  const client = dynamodbClient(server.endpoint);
  await dynamodbStore(client, { table }).createTable();
  const addressAt = (port: number): Place["address"] => {
    const url = new URL(server.endpoint);
    url.port = String(port);
    return { endpoint: url.origin, table };
  };
  const port = Number(new URL(server.endpoint).port || 80);
  const close = async (): Promise<void> => {
    await client.deleteTable({ TableName: table });
    client.destroy();
    await server.stop();
  };
  return { kind: "dynamodb", address: addressAt(port), server, port, addressAt, close };
}

/** A Redis server. Names of limiters keep its users apart. */
export async function redisPlace(args?: readonly string[]): Promise<ServedPlace<RedisServer>> {
  const server = await startRedis(args === undefined ? {} : { args });
  const addressAt = (port: number): Place["address"] => {
    const url = new URL(server.url);
    url.port = String(port);
    return { url: url.href };
  };
  const { port } = server;
  return { kind: "redis", address: addressAt(port), server, port, addressAt, close: () => server.stop() };
}

/** A Redis Cluster of three masters. */
export async function redisClusterPlace(): Promise<Place> {
  const cluster = await startRedisCluster();
  const nodes = cluster.nodes.map(({ host, port }) => ({ host, port }));
  return { kind: "redis-cluster", address: { nodes }, close: () => cluster.stop() };
}
