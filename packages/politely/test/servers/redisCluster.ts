import { until } from "../fleet/until.js";
import { askRedis, type RedisServer, startRedisProcess } from "./redisProcess.js";

const masterCount = 3;
const slotCount = 16_384;
const readyWithinMs = 20_000;

/** Three masters that share the slots, without replicas. */
export interface RedisCluster extends AsyncDisposable {
  /** Each has `host`, `port` and `url`, as clients want them, and can be killed and restarted by itself. */
  readonly nodes: readonly RedisServer[];
  /** Ends all of them. A second call does nothing. */
  stop(): Promise<void>;
}

/** Starts a Redis Cluster and resolves once every node says that all slots are served, about 2 s later. `REDIS_URL` does not matter. */
export async function startRedisCluster(): Promise<RedisCluster> {
  const starts = await Promise.allSettled(
    Array.from({ length: masterCount }, () =>
      startRedisProcess({
        config: ({ busPort }) => [
          "cluster-enabled yes",
          "cluster-config-file nodes.conf",
          "cluster-node-timeout 2000",
          `cluster-port ${busPort}`,
        ],
      }),
    ),
  );
  const nodes = starts.flatMap((start) => (start.status === "fulfilled" ? [start.value] : []));
  const stop = async (): Promise<void> => {
    await Promise.all(nodes.map((node) => node.stop()));
  };
  try {
    for (const start of starts) if (start.status === "rejected") throw start.reason;
    await join(nodes);
  } catch (error) {
    await stop();
    throw error;
  }
  return { nodes, stop, [Symbol.asyncDispose]: stop };
}

async function join(nodes: readonly RedisServer[]): Promise<void> {
  const slotAt = (index: number): number => Math.floor((index * slotCount) / nodes.length);
  await Promise.all(
    nodes.map(async ({ port }, index) => {
      await askRedis(port, "CLUSTER", "SET-CONFIG-EPOCH", String(index + 1));
      const range = [slotAt(index), slotAt(index + 1) - 1].map(String);
      await askRedis(port, "CLUSTER", "ADDSLOTSRANGE", ...range);
    }),
  );
  const [first, ...others] = nodes;
  for (const { host, port } of others) {
    await askRedis(first.port, "CLUSTER", "MEET", host, String(port), await busPortOf(port));
  }
  await until("all nodes of the Redis Cluster say that it is ok", readyWithinMs, async () => {
    const infos = await Promise.all(nodes.map(({ port }) => askRedis(port, "CLUSTER", "INFO")));
    return infos.every((info) => isComplete(String(info)));
  });
}

async function busPortOf(port: number): Promise<string> {
  const [, value] = (await askRedis(port, "CONFIG", "GET", "cluster-port")) as readonly string[];
  return value;
}

function isComplete(info: string): boolean {
  return [`cluster_state:ok`, `cluster_slots_ok:${slotCount}`, `cluster_known_nodes:${masterCount}`].every((line) =>
    info.includes(`${line}\r\n`),
  );
}
