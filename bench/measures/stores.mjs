// @ts-check

import flexible from "rate-limiter-flexible";
import { askedKey, takeOne } from "../harness/askedKey.mjs";
import { makeFolder, startDynamodb, startPostgres } from "../harness/storeServers.mjs";
import { median } from "../harness/timing.mjs";
import { politely } from "./contenders.mjs";

const IN_FLIGHT = 64;
const POINTS = 1_000_000_000;

/** Takes one unit of a key. @typedef {(key: string) => Promise<unknown>} Take */
/** Both on one server. @typedef {{ politely: Take; flexible: Take; close(): Promise<void> }} Pair */

const metrics = [
  { key: "ratio", title: "× rate-limiter-flexible", digits: 2 },
  { key: "perSecond", title: "decisions/s", digits: 0 },
  { key: "flexiblePerSecond", title: "rate-limiter-flexible's", digits: 0 },
];
const goals = [{ text: "at least level with rate-limiter-flexible", metric: "ratio", atLeast: 1 }];

/** @param {string} kind @param {string} name @param {number} keys @returns {import("./types.d.ts").Row} */
const row = (kind, name, keys) => ({
  id: `${kind}-${keys}`,
  title: `${name}: decisions with a rate, ${keys === 1 ? "one key" : `${keys} keys`}, ${IN_FLIGHT} in flight, one process`,
  metrics,
  contenders: [politely],
  params: { kind, keys, seconds: 2, samples: 5 },
  quick: { seconds: 1, samples: 3 },
  capMs: 180_000,
  rounds: 1,
  hasRatio: false,
  goals,
});

/** @type {import("./types.d.ts").Measure} */
export const stores = {
  name: "stores",
  rows: [
    row("sqlite", "SQLite", 1),
    row("sqlite", "SQLite", 1_000),
    row("postgres", "PostgreSQL", 1),
    row("postgres", "PostgreSQL", 1_000),
    row("dynamodb", "DynamoDB Local", 1),
    row("dynamodb", "DynamoDB Local", 1_000),
  ],

  // Both in one process, on one server and by turns, so that the machine treats them alike.
  async run(_rival, params) {
    const { kind, keys, seconds, samples } = /** @type {{ kind: string } & typeof params} */ (params);
    const pair = await openers[kind]();
    try {
      const names = Array.from({ length: keys }, (_, index) => `key-${index}`);
      /** @type {number[]} */
      const ours = [];
      /** @type {number[]} */
      const theirs = [];
      for (let sample = 0; sample <= samples; sample++) {
        const own = await perSecond(pair.politely, names, seconds);
        const other = await perSecond(pair.flexible, names, seconds);
        // The first is to warm up.
        if (sample === 0) continue;
        ours.push(own);
        theirs.push(other);
      }
      const ratio = median(ours.map((value, index) => value / theirs[index]));
      return { ratio, perSecond: median(ours), flexiblePerSecond: median(theirs) };
    } finally {
      await pair.close();
    }
  },
};

/** @param {Take} take @param {readonly string[]} names @param {number} seconds */
async function perSecond(take, names, seconds) {
  const startMs = performance.now();
  const endMs = startMs + seconds * 1000;
  let done = 0;
  let next = 0;
  const work = async () => {
    while (performance.now() < endMs) {
      await take(names[next++ % names.length]);
      done += 1;
    }
  };
  await Promise.all(Array.from({ length: IN_FLIGHT }, work));
  return (done * 1000) / (performance.now() - startMs);
}

/** Takes by `transact`, as the limiter does, with an asker for each on the way at a key. @param {import("politely").Store} store @returns {Take} */
function takeFrom(store) {
  const keys = [askedKey({ rateCount: 1000, ratePerUs: 1000, burst: 1_000_000 })];
  /** @type {Map<string, number[]>} */
  const free = new Map();
  let asker = 0;
  let sequence = 0;
  return async (name) => {
    const own = free.get(name) ?? [];
    free.set(name, own);
    const number = own.pop() ?? asker++;
    sequence += 1;
    await takeOne(store, [name], keys, `bench.${number}`, sequence);
    own.push(number);
  };
}

/** @type {Record<string, () => Promise<Pair>>} */
const openers = {
  async sqlite() {
    const [{ default: Database }, { sqliteStore }] = await Promise.all([import("libsql"), import("politely/sqlite")]);
    const folder = makeFolder("sqlite");
    const own = new Database(`${folder}/own.db`);
    const other = new Database(`${folder}/other.db`);
    for (const handle of [own, other]) handle.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL");
    const rival = await new Promise((resolve, reject) => {
      const limiter = new flexible.RateLimiterSQLite(
        { storeClient: other, storeType: "better-sqlite3", tableName: "flexible", points: POINTS, duration: 3600 },
        (/** @type {unknown} */ error) => (error ? reject(error) : resolve(limiter)),
      );
    });
    return {
      politely: takeFrom(sqliteStore(own)),
      flexible: (key) => rival.consume(key),
      async close() {
        own.close();
        other.close();
      },
    };
  },

  async postgres() {
    const [server, { default: pg }, { postgresStore }] = await Promise.all([
      startPostgres(),
      import("pg"),
      import("politely/postgres"),
    ]);
    const own = new pg.Pool({ connectionString: server.url, max: 10 });
    const other = new pg.Pool({ connectionString: server.url, max: 10 });
    const store = postgresStore(own);
    await store.createTable();
    const rival = await new Promise((resolve, reject) => {
      const limiter = new flexible.RateLimiterPostgres(
        { storeClient: other, storeType: "pool", tableName: "flexible", points: POINTS, duration: 3600 },
        (/** @type {unknown} */ error) => (error ? reject(error) : resolve(limiter)),
      );
    });
    return {
      politely: takeFrom(store),
      flexible: (key) => rival.consume(key),
      async close() {
        for (const pool of [own, other]) pool.on("error", () => undefined);
        await Promise.all([own.end(), other.end()]);
        await server.stop();
      },
    };
  },

  async dynamodb() {
    const [server, { DynamoDB }, { dynamodbStore }] = await Promise.all([
      startDynamodb(),
      import("@aws-sdk/client-dynamodb"),
      import("politely/dynamodb"),
    ]);
    const credentials = { accessKeyId: "bench", secretAccessKey: "bench" };
    const config = { endpoint: server.endpoint, region: "eu-central-1", credentials };
    const [own, other] = [new DynamoDB(config), new DynamoDB(config)];
    const store = dynamodbStore(own, { table: "politely" });
    await store.createTable();
    const rival = await new Promise((resolve, reject) => {
      const limiter = new flexible.RateLimiterDynamo(
        { storeClient: other, tableName: "flexible", points: POINTS, duration: 3600 },
        (/** @type {unknown} */ error) => (error ? reject(error) : resolve(limiter)),
      );
    });
    return {
      politely: takeFrom(store),
      flexible: (key) => rival.consume(key),
      async close() {
        own.destroy();
        other.destroy();
        await server.stop();
      },
    };
  },
};
