// @ts-check
// One of several processes that share a limit: it asks for starts without a pause until it is told to stop, and then says what it got,
// and what that took once everybody was in line.
import { once } from "node:events";
import { cpuUs, pauseMs } from "./timing.mjs";

/** @typedef {{ kind: string; address: Record<string, string>; rate: { count: number; per: number }; batch: boolean; callers: number; name: string }} Setup */
/** @typedef {{ startsUs: number[]; machineUs: number[]; calls: number; callsFor: number; cpuUs: number }} Account */
/** @typedef {{ store: import("politely").Store; close(): unknown }} Opened */

/** @type {Record<string, (address: Record<string, string>) => Promise<Opened>>} */
const openers = {
  async sqlite({ path }) {
    const [{ default: Database }, { sqliteStore }] = await Promise.all([import("libsql"), import("politely/sqlite")]);
    const handle = new Database(path);
    handle.exec("PRAGMA synchronous = NORMAL");
    return { store: sqliteStore(handle), close: () => handle.close() };
  },
  async redis({ url }) {
    const [{ Redis }, { redisStore }] = await Promise.all([import("ioredis"), import("politely/redis")]);
    const client = new Redis(url);
    return { store: redisStore(client), close: () => client.disconnect() };
  },
  async postgres({ url }) {
    const [{ Pool }, { postgresStore }] = await Promise.all([import("pg"), import("politely/postgres")]);
    const pool = new Pool({ connectionString: url, max: 2 });
    const store = postgresStore(pool);
    await store.createTable();
    return { store, close: () => pool.end() };
  },
  async dynamodb({ endpoint }) {
    const [{ DynamoDB }, { dynamodbStore }] = await Promise.all([
      import("@aws-sdk/client-dynamodb"),
      import("politely/dynamodb"),
    ]);
    const credentials = { accessKeyId: "bench", secretAccessKey: "bench" };
    const client = new DynamoDB({ endpoint, region: "eu-central-1", credentials });
    const store = dynamodbStore(client, { table: "politely-bench" });
    await store.createTable();
    return { store, close: () => client.destroy() };
  },
};

process.once("message", (/** @type {Setup} */ setup) => void take(setup));

/** @param {Setup} setup */
async function take(setup) {
  const { politely } = await import("politely");
  const opened = await openers[setup.kind](setup.address);
  let calls = 0;
  const { store } = opened;
  /** @type {import("politely").Store} */
  const counted = {
    name: store.name,
    timeline: store.timeline,
    transact(keys, operation) {
      calls += 1;
      return store.transact(keys, operation);
    },
  };
  const { rate, batch, callers, name } = setup;
  const limiter = politely({ default: { rate } }, { store: counted, batch, name, outage: "closed" });
  const stop = new AbortController();
  /** @type {Account} */
  const account = { startsUs: [], machineUs: [], calls: 0, callsFor: 0, cpuUs: 0 };
  const caller = async () => {
    while (!stop.signal.aborted) {
      const permit = await limiter.acquire("bench.test", { signal: stop.signal }).catch(() => undefined);
      if (permit === undefined) {
        // The store is away, or it is over.
        await pauseMs(20);
        continue;
      }
      account.startsUs.push(Math.round(permit.startedAtMs * 1000));
      account.machineUs.push(Number(process.hrtime.bigint() / 1000n));
      await permit.release();
    }
  };
  // What is loaded, connected and compiled before does not count.
  await limiter.check("bench.test");
  process.send?.("ready");
  await once(process, "message");
  const work = Array.from({ length: callers }, () => caller());
  await once(process, "message");
  const [cpuAtStart, callsAtStart, startsAtStart] = [cpuUs(), calls, account.startsUs.length];
  await once(process, "message");
  stop.abort();
  account.cpuUs = cpuUs() - cpuAtStart;
  account.calls = calls - callsAtStart;
  account.callsFor = account.startsUs.length - startsAtStart;
  await Promise.all(work);
  await limiter.close();
  await opened.close();
  process.send?.(account, () => process.exit());
}
