// @ts-check
import { fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import Database from "libsql";
import { makeFolder, startDynamodb, startPostgres, startRedis } from "../harness/storeServers.mjs";
import { ensure, pauseMs } from "../harness/timing.mjs";

const MEMBER = fileURLToPath(new URL("../harness/fleetMember.mjs", import.meta.url));
const PROCESSES = 8;
/** The first part is not judged: processes come, compile, and learn how fast the store is. */
const WARM_UP_MS = 10_000;
const WARM_SERVER_MS = 15_000;

/** @typedef {import("../harness/fleetMember.mjs").Account} Account */
/** @typedef {{ kind: string; batch?: boolean }} Options */

/** @param {string} name @param {Options} options @returns {import("./contenders.mjs").Contender} */
const contender = (name, options) => ({ name, rival: "politely", options });
const sqlite = contender("SQLite", { kind: "sqlite" });
const redis = contender("Redis", { kind: "redis" });
const postgres = contender("PostgreSQL", { kind: "postgres" });
const dynamodb = contender("DynamoDB Local", { kind: "dynamodb" });
const batched = contender("Redis, batch", { kind: "redis", batch: true });

const metrics = [
  { key: "sharePercent", title: "% of limit used", digits: 2 },
  { key: "extra", title: "extra starts", digits: 0 },
  { key: "mostPercent", title: "most in a second, %", digits: 1 },
  { key: "callsPerStart", title: "calls/start", digits: 2 },
  { key: "cpuPercent", title: "% of a core", digits: 1 },
];

/**
 * @param {number} perSecond
 * @param {readonly import("./contenders.mjs").Contender[]} contenders
 * @returns {import("./types.d.ts").Row}
 */
const row = (perSecond, contenders) => ({
  id: `fleet-${perSecond}`,
  title: `${PROCESSES} processes that share ${perSecond.toLocaleString("en-US")} starts per second, burst 1, one key`,
  metrics,
  contenders,
  params: { count: perSecond, seconds: 10 },
  quick: { seconds: 4 },
  capMs: 120_000,
  rounds: 1,
  hasRatio: false,
  goals: contenders.flatMap((one) => {
    const of = one.name;
    return [
      { text: `${of}: at least 98 % of the limit used`, of, metric: "sharePercent", atLeast: 98 },
      one === batched
        ? { text: `${of}: at most 2 % too many in a second`, of, metric: "mostPercent", atMost: 102 }
        : { text: `${of}: no extra start`, of, metric: "extra", atMost: 0 },
      { text: `${of}: at most 2 calls for a start`, of, metric: "callsPerStart", atMost: 2 },
    ];
  }),
});

/** @type {import("./types.d.ts").Measure} */
export const fleet = {
  name: "fleet",
  rows: [
    row(2, [sqlite, redis, postgres, dynamodb]),
    row(50, [sqlite, redis, postgres, dynamodb]),
    row(2_000, [redis, batched]),
    {
      ...row(0.5, [redis]),
      id: "fleet-slow",
      title: "50 processes that wait for one start each 2 s, one key",
      params: { count: 0.5, seconds: 60, processes: 50 },
      isSlow: true,
      capMs: 240_000,
    },
  ],

  async run(_rival, params, options) {
    const { count, seconds, processes = PROCESSES } = /** @type {typeof params & { processes?: number }} */ (params);
    const { kind, batch = false } = /** @type {Options} */ (options);
    const server = await servers[kind]();
    try {
      const rate = count < 1 ? { count: 1, per: 1_000 / count } : { count, per: 1_000 };
      // As many as are needed to have somebody waiting in each process all the time.
      const callers = Math.max(2, Math.ceil(count / 50));
      const setup = { kind, address: server.address, rate, batch, callers, name: "fleet" };
      const accounts = await runFleet(setup, processes, seconds * 1000);
      return judge(accounts, count, seconds);
    } finally {
      await server.stop();
    }
  },
};

/** @type {Record<string, () => Promise<{ address: Record<string, string>; stop(): unknown }>>} */
const servers = {
  async sqlite() {
    const path = join(makeFolder("sqlite"), "limits.db");
    const handle = new Database(path);
    // Whoever opens the file at this moment would find it locked.
    handle.exec("PRAGMA journal_mode = WAL");
    handle.close();
    return { address: { path }, stop: () => undefined };
  },
  async redis() {
    const server = await startRedis();
    return { address: { url: server.url }, stop: () => server.stop() };
  },
  async postgres() {
    const server = await startPostgres();
    return { address: { url: server.url }, stop: () => server.stop() };
  },
  async dynamodb() {
    const server = await startDynamodb();
    await warmDynamodb(server.endpoint);
    return { address: { endpoint: server.endpoint }, stop: () => server.stop() };
  },
};

/** Lets the server, which is a Java program and ten times as slow in the beginning, run hot. @param {string} endpoint */
async function warmDynamodb(endpoint) {
  const [{ DynamoDB }, { dynamodbStore }] = await Promise.all([
    import("@aws-sdk/client-dynamodb"),
    import("politely/dynamodb"),
  ]);
  const credentials = { accessKeyId: "bench", secretAccessKey: "bench" };
  const client = new DynamoDB({ endpoint, region: "eu-central-1", credentials });
  const table = "politely-bench";
  await dynamodbStore(client, { table }).createTable();
  const endMs = performance.now() + WARM_SERVER_MS;
  const write = async (/** @type {number} */ number) => {
    const Item = { key: { S: `warm ${number}` }, value: { S: "x".repeat(500) } };
    while (performance.now() < endMs) await client.putItem({ TableName: table, Item });
  };
  await Promise.all(Array.from({ length: 8 }, (_, number) => write(number)));
  client.destroy();
}

/**
 * Lets all begin at once, warm up, and ends them `ms` later.
 *
 * @param {object} setup
 * @param {number} processes
 * @param {number} ms
 * @returns {Promise<Account[]>}
 */
async function runFleet(setup, processes, ms) {
  const members = Array.from({ length: processes }, () => fork(MEMBER));
  try {
    await Promise.all(
      members.map(async (member) => {
        member.send(setup);
        await heard(member);
      }),
    );
    for (const member of members) member.send("go");
    await pauseMs(WARM_UP_MS);
    for (const member of members) member.send("count");
    await pauseMs(ms);
    const accounts = members.map(heard);
    for (const member of members) member.send("stop");
    return await Promise.all(accounts);
  } finally {
    for (const member of members) member.kill("SIGKILL");
  }
}

/** The next message of a member, or a rejection when it ends without one. @param {import("node:child_process").ChildProcess} member @returns {Promise<any>} */
async function heard(member) {
  const ended = once(member, "exit").then(([code]) => {
    throw new Error(`a process of the fleet ended with code ${code}`);
  });
  const [message] = await Promise.race([once(member, "message"), ended]);
  return message;
}

/** @param {readonly Account[]} accounts @param {number} count @param {number} seconds */
function judge(accounts, count, seconds) {
  const all = sorted(accounts.flatMap(({ startsUs }) => startsUs));
  const sinceUs = all[all.length - 1] - seconds * 1_000_000;
  const judged = all.filter((atUs) => atUs >= sinceUs);
  ensure(judged.length > 2, "hardly anything started");
  const gapUs = 1_000_000 / count;
  const sharePercent = (100 * (judged.length - 1) * gapUs) / (judged[judged.length - 1] - judged[0]);
  const calls = accounts.reduce((sum, account) => sum + account.calls, 0);
  const cpuUs = accounts.reduce((sum, account) => sum + account.cpuUs, 0);
  return {
    sharePercent,
    extra: extraStarts(all, gapUs),
    mostPercent: (100 * mostInASecond(sorted(accounts.flatMap(({ machineUs }) => machineUs)))) / count,
    callsPerStart: calls / accounts.reduce((sum, { callsFor }) => sum + callsFor, 0),
    cpuPercent: cpuUs / 10 / (seconds * 1000),
  };
}

/** How many starts are too many in the worst of all spans: a span of t has room for 1 and t times the rate. @param {readonly number[]} startsUs @param {number} gapUs */
function extraStarts(startsUs, gapUs) {
  let worst = 0;
  for (let last = 0; last < startsUs.length; last++) {
    for (let first = last; first >= 0; first--) {
      const allowed = 1 + (startsUs[last] - startsUs[first]) / gapUs;
      worst = Math.max(worst, Math.ceil(last - first + 1 - allowed - 1e-9));
    }
  }
  return worst;
}

/** By the callers' clock. @param {readonly number[]} startsUs */
function mostInASecond(startsUs) {
  let [most, first] = [0, 0];
  for (let last = 0; last < startsUs.length; last++) {
    while (startsUs[last] - startsUs[first] >= 1_000_000) first += 1;
    most = Math.max(most, last - first + 1);
  }
  return most;
}

/** @param {number[]} numbers */
function sorted(numbers) {
  return numbers.sort((a, b) => a - b);
}
