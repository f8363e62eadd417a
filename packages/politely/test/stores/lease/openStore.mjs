// How a child process opens each kind of store at an address. The tests of each store say the address: sqlite.test.ts, servers.test.ts.

/** @typedef {{ store: object; close(): unknown }} Opened */
/** @typedef {(path: string) => Promise<any>} Library */

/** @type {Record<string, (library: Library, address: any, isCrowded: boolean) => Promise<Opened>>} */
const kinds = {
  async sqlite(library, { path }) {
    const [{ default: Database }, { sqliteStore }] = await Promise.all([import("libsql"), library("stores/sqlite.js")]);
    const handle = new Database(path);
    return { store: sqliteStore(handle), close: () => handle.close() };
  },
  async postgres(library, { url, table }) {
    const [{ Client }, { postgresStore }] = await Promise.all([import("pg"), library("stores/postgres.js")]);
    const client = new Client({ connectionString: url });
    await client.connect();
    return { store: postgresStore(client, { table }), close: () => client.end() };
  },
  async dynamodb(library, { endpoint, table }, isCrowded) {
    const [{ DynamoDB }, { dynamodbStore }] = await Promise.all([
      import("@aws-sdk/client-dynamodb"),
      library("stores/dynamodb.js"),
    ]);
    const credentials = { accessKeyId: "politely", secretAccessKey: "politely" };
    const client = new DynamoDB({ endpoint, region: "eu-central-1", credentials });
    // A hundred processes that all read the time as exactly as they can are too much for a server on the same small machine.
    const options = isCrowded ? { table, clockErrorMs: 1_100, timeoutMs: 60_000 } : { table };
    return { store: dynamodbStore(client, options), close: () => client.destroy() };
  },
};

/**
 * Opens a store of one of the kinds above.
 *
 * @param {string} kind
 * @param {Library} library
 * @param {unknown} address
 * @param {boolean} isCrowded a hundred others do so too
 */
export function openStore(kind, library, address, isCrowded) {
  const open = kinds[kind];
  if (open === undefined) throw new Error(`openStore.mjs does not know the kind "${kind}" yet.`);
  return open(library, address, isCrowded);
}
