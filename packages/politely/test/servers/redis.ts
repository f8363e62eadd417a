import { type RedisServer, startRedisProcess } from "./redisProcess.js";

/** How to start Redis. */
export interface RedisOptions {
  /** For redis-server's command line: `["--maxmemory", "2mb"]`. They need a server of their own, whatever `REDIS_URL` says. */
  readonly args?: readonly string[];
}

/**
 * Starts a Redis server that keeps nothing on disk, or takes the one that `REDIS_URL` names.
 *
 * The latter belongs to somebody else, and may be in use: take keys that nobody else has, and remove them. It is neither
 * stopped nor restarted, and killing or restarting it rejects.
 */
export async function startRedis({ args }: RedisOptions = {}): Promise<RedisServer> {
  const url = process.env.REDIS_URL;
  if (url !== undefined && url !== "" && args === undefined) return foreignServer(url);
  return startRedisProcess(args === undefined ? {} : { args });
}

function foreignServer(url: string): RedisServer {
  if (!URL.canParse(url)) throw new TypeError(`REDIS_URL must be a URL such as redis://127.0.0.1:6379; got "${url}"`);
  const { hostname, port } = new URL(url);
  const refuse = (): Promise<never> =>
    Promise.reject(new Error("The server of REDIS_URL is not ours to restart or kill; unset REDIS_URL for this test."));
  const stop = (): Promise<void> => Promise.resolve();
  return {
    url,
    host: hostname,
    port: port === "" ? 6379 : Number(port),
    pid: 0,
    stop,
    restart: refuse,
    kill9: refuse,
    [Symbol.asyncDispose]: stop,
  };
}
