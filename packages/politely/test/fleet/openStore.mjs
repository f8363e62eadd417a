// How a child process opens each kind of store at an address. Whoever starts the child says the address. The library is the bundled one, which
// has clients beside it: see bundleLibrary.ts.

/** @typedef {{ store: any; close(): unknown }} Opened */
/** @typedef {(path: string) => Promise<any>} Library */

/** @type {Record<string, (library: Library, address: any, isCrowded: boolean) => Promise<Opened>>} */
const kinds = {
  async sqlite(library, { path }) {
    const [{ default: Database }, { sqliteStore }] = await Promise.all([import("libsql"), library("sqlite.js")]);
    const handle = new Database(path);
    handle.exec("PRAGMA synchronous = NORMAL");
    return { store: sqliteStore(handle), close: () => handle.close() };
  },
  async postgres(library, { url, table, connections = 2 }, isCrowded) {
    const [{ Pool }, { postgresStore }] = await Promise.all([library("clients/pg.js"), library("postgres.js")]);
    const pool = new Pool({ connectionString: url, max: connections });
    // A connection that breaks while nobody uses it would end the process otherwise.
    pool.on("error", () => {});
    const options = isCrowded ? { table, timeoutMs: 60_000 } : { table };
    return { store: postgresStore(pool, options), close: () => pool.end() };
  },
  async dynamodb(library, { endpoint, table }, isCrowded) {
    const [{ DynamoDB }, { dynamodbStore }] = await Promise.all([
      library("clients/@aws-sdk/client-dynamodb.js"),
      library("dynamodb.js"),
    ]);
    const credentials = { accessKeyId: "politely", secretAccessKey: "politely" };
    const client = new DynamoDB({ endpoint, region: "eu-central-1", credentials });
    // A hundred processes that all read the time as exactly as they can are too much for a server on the same small machine.
    const options = isCrowded ? { table, clockErrorMs: 1_100, timeoutMs: 60_000 } : { table };
    return { store: dynamodbStore(client, options), close: () => client.destroy() };
  },
  async redis(library, { url }) {
    const { Redis } = await library("clients/ioredis.js");
    return redisOf(library, new Redis(url));
  },
  async "redis-cluster"(library, { nodes }) {
    const { Cluster } = await library("clients/ioredis.js");
    return redisOf(library, new Cluster(nodes));
  },
  async "redis-sentinel"(library, { sentinels, name }) {
    const { Redis } = await library("clients/ioredis.js");
    return redisOf(library, new Redis({ sentinels, name, sentinelRetryStrategy: () => 50, failoverDetector: false }));
  },
};

/** @param {Library} library @param {any} client */
async function redisOf(library, client) {
  // What goes wrong comes out of the calls; without a listener it would be printed too.
  client.on("error", () => {});
  const { redisStore } = await library("redis.js");
  return { store: redisStore(client), close: () => client.disconnect() };
}

/**
 * Opens a store of one of the kinds above.
 *
 * @param {string} kind
 * @param {Library} library
 * @param {unknown} address
 * @param {boolean} [isCrowded] a hundred others do so too
 */
export function openStore(kind, library, address, isCrowded = false) {
  const open = kinds[kind];
  if (open === undefined) throw new Error(`openStore.mjs does not know the kind "${kind}" yet.`);
  return open(library, address, isCrowded);
}
