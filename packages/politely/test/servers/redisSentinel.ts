import { until } from "../fleet/until.js";
import { askRedis, type RedisServer, startRedisProcess } from "./redisProcess.js";

const name = "politely";
const readyWithinMs = 20_000;
const failoverWithinMs = 30_000;
/** Long enough that a busy machine makes no failover of its own. */
const calmMs = 10_000;
const alertMs = 200;

/** A master, a replica, and the sentinel that watches over them. */
export interface RedisSentinel extends AsyncDisposable {
  /** Where clients ask which server is the master. */
  readonly sentinels: readonly { readonly host: string; readonly port: number }[];
  /** What the sentinel calls the master. */
  readonly name: string;
  /** The one that is master now, and the one that follows it. */
  readonly master: RedisServer;
  readonly replica: RedisServer;
  /**
   * Kills the master with SIGKILL, and resolves once the other has its part and the killed one is back as its replica, about 3 s
   * later. Replication is asynchronous: what the master had not passed on is lost.
   */
  failover(): Promise<void>;
  /** Ends all of them. A second call does nothing. */
  stop(): Promise<void>;
}

/** Starts master, replica and one sentinel, whose word is enough, and resolves once it knows both. `REDIS_URL` does not matter. */
export async function startRedisSentinel(): Promise<RedisSentinel> {
  const servers: RedisServer[] = [];
  const stop = async (): Promise<void> => {
    // The sentinel last started goes first, and starts no failover while the others end.
    for (const server of servers.toReversed()) await server.stop();
  };
  try {
    const data = { args: ["--repl-diskless-sync-delay", "0"] };
    for (let index = 0; index < 2; index++) servers.push(await startRedisProcess(data));
    const [first, second] = servers;
    await follow(second, first);
    const sentinel = await startRedisProcess(sentinelOf(first));
    servers.push(sentinel);
    await until("the sentinel knows master and replica", readyWithinMs, () => knowsReplica(sentinel, second));
    return sentinelSystem({ servers, sentinel, master: first, replica: second }, stop);
  } catch (error) {
    await stop();
    throw error;
  }
}

function sentinelOf({ host, port }: RedisServer): Parameters<typeof startRedisProcess>[0] {
  return {
    args: ["--sentinel"],
    readyLine: /\+monitor master/,
    config: () => [
      `sentinel monitor ${name} ${host} ${port} 1`,
      `sentinel down-after-milliseconds ${name} ${calmMs}`,
      `sentinel failover-timeout ${name} 5000`,
    ],
  };
}

interface Parts {
  readonly servers: readonly RedisServer[];
  readonly sentinel: RedisServer;
  master: RedisServer;
  replica: RedisServer;
}

function sentinelSystem(parts: Parts, stop: () => Promise<void>): RedisSentinel {
  return {
    sentinels: [{ host: parts.sentinel.host, port: parts.sentinel.port }],
    name,
    get master() {
      return parts.master;
    },
    get replica() {
      return parts.replica;
    },
    async failover() {
      const { sentinel, master, replica } = parts;
      await master.kill9();
      await giveUpAfter(alertMs, sentinel);
      await until("the sentinel has made the replica master", failoverWithinMs, async () => {
        const [, port] = (await askRedis(sentinel.port, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", name)) as string[];
        return Number(port) === replica.port && (await replicationOf(replica)).includes("role:master\r\n");
      });
      await giveUpAfter(calmMs, sentinel);
      await master.restart();
      await follow(master, replica);
      Object.assign(parts, { master: replica, replica: master });
      await until("the sentinel knows the new replica", failoverWithinMs, () => knowsReplica(sentinel, master));
    },
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

async function giveUpAfter(silenceMs: number, sentinel: RedisServer): Promise<void> {
  await askRedis(sentinel.port, "SENTINEL", "SET", name, "down-after-milliseconds", String(silenceMs));
}

async function follow(replica: RedisServer, master: RedisServer): Promise<void> {
  await askRedis(replica.port, "REPLICAOF", master.host, String(master.port));
  await until("the replica has the master's data", readyWithinMs, async () =>
    (await replicationOf(replica)).includes("master_link_status:up\r\n"),
  );
}

async function replicationOf({ port }: RedisServer): Promise<string> {
  return String(await askRedis(port, "INFO", "replication"));
}

/** Whether the sentinel sees this replica up and following, so that it would choose it. */
async function knowsReplica(sentinel: RedisServer, replica: RedisServer): Promise<boolean> {
  const rows = (await askRedis(sentinel.port, "SENTINEL", "REPLICAS", name)) as readonly (readonly string[])[];
  return rows.some((row) => {
    const field = (of: string): string | undefined => row[row.indexOf(of) + 1];
    return field("port") === String(replica.port) && field("flags") === "slave" && field("master-link-status") === "ok";
  });
}
