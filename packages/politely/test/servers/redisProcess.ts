import { closeSync, openSync, rmSync } from "node:fs";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Redis } from "ioredis";
import { freePort } from "../fleet/freePort.js";
import { atExit, type GuardedProcess, guardedProcess } from "../fleet/guardedProcess.js";
import { until } from "../fleet/until.js";

const host = "127.0.0.1";
const portAttempts = 5;
const readyWithinMs = 10_000;
const answerWithinMs = 2_000;

/** A Redis server. It ends with `stop`, and at the latest with the process that started it. */
export interface RedisServer extends AsyncDisposable {
  /** `"redis://127.0.0.1:10240"`. */
  readonly url: string;
  readonly host: string;
  readonly port: number;
  /** Another one after `restart`; 0 for a server that somebody else runs. */
  readonly pid: number;
  /** Ends it and removes its folder. A second call does nothing, nor does any for a server that somebody else runs. */
  stop(): Promise<void>;
  /** Ends it if it still runs, and starts it again on the same port. It remembers what its persistence kept, which is nothing unless `args` say so. */
  restart(): Promise<void>;
  /** Kills it with SIGKILL. `restart` brings it back. */
  kill9(): Promise<void>;
}

/** Ports for one start: the second is for the bus of a cluster. */
export interface RedisPorts {
  readonly port: number;
  readonly busPort: number;
}

/** How a Redis server is started. */
export interface RedisProgram {
  /** Lines for its configuration file, which already has address and port, and no persistence. */
  readonly config?: (ports: RedisPorts) => readonly string[];
  /** For the command line. They win over the file. */
  readonly args?: readonly string[];
  /** What its log says once it answers. */
  readonly readyLine?: RegExp;
}

/**
 * Starts redis-server on loopback, with a folder of its own, and resolves once it answers.
 *
 * Tries up to five ports. Rejects with one line saying what to install where it is missing, and with what it said when
 * it ends early or is silent for 10 s. `args` must not turn its log off: the log tells that it is ready.
 */
export async function startRedisProcess(program: RedisProgram = {}): Promise<RedisServer> {
  for (let attempt = 1; ; attempt++) {
    const ports = { port: await freePort(), busPort: await freePort() };
    const folder = await mkdtemp(join(tmpdir(), "politely-redis-"));
    const forget = atExit(() => rmSync(folder, { recursive: true, force: true }));
    const remove = async (): Promise<void> => {
      forget();
      await rm(folder, { recursive: true, force: true });
    };
    const lines = [`bind ${host}`, `port ${ports.port}`, 'save ""', "daemonize no", ...(program.config?.(ports) ?? [])];
    await writeFile(join(folder, "redis.conf"), `${lines.join("\n")}\n`);
    try {
      return redisServer({ program, folder, port: ports.port, remove }, await launch(program, folder));
    } catch (error) {
      await remove();
      if (attempt === portAttempts || !/already in use|failed listening/i.test(String(error))) throw error;
    }
  }
}

/** Sends one command on a connection of its own. Rejects if the server is away, says no, or does not answer within 2 s. */
export async function askRedis(port: number, command: string, ...args: readonly string[]): Promise<unknown> {
  const client = new Redis({
    host,
    port,
    lazyConnect: true,
    enableReadyCheck: false,
    connectTimeout: answerWithinMs,
    commandTimeout: answerWithinMs,
    maxRetriesPerRequest: 0,
    retryStrategy: () => null,
  });
  // What goes wrong comes out of the call; without a listener it would be printed too.
  client.on("error", () => {});
  try {
    await client.connect();
    return await client.call(command, ...args);
  } finally {
    client.disconnect();
  }
}

async function launch(program: RedisProgram, folder: string): Promise<GuardedProcess> {
  const logPath = join(folder, "redis.log");
  const log = openSync(logPath, "w");
  const server = guardedProcess("redis-server", ["redis.conf", ...(program.args ?? [])], {
    cwd: folder,
    stdio: ["ignore", log, log],
  });
  closeSync(log);
  const { readyLine = /ready to accept connections/i } = program;
  const said = async (): Promise<string> => (await readFile(logPath, "utf8")).slice(-100_000);
  try {
    await until("redis-server says that it is ready, or ends", readyWithinMs, async () => {
      return server.ending !== undefined || readyLine.test(await said());
    });
  } catch {
    await server.kill();
  }
  if (server.ending === undefined) return server;
  throw new Error(
    server.ending.isMissing
      ? "redis-server is not installed. Run: node scripts/servers.mjs, or: apt-get install redis-server util-linux."
      : `redis-server did not get ready within ${readyWithinMs} ms. It said: ${(await said()).slice(-1_000)}`,
  );
}

interface Place {
  readonly program: RedisProgram;
  readonly folder: string;
  readonly port: number;
  remove(): Promise<void>;
}

function redisServer({ program, folder, port, remove }: Place, first: GuardedProcess): RedisServer {
  let running = first;
  let stopped: Promise<void> | undefined;
  const stop = (): Promise<void> => (stopped ??= running.end().then(remove));
  return {
    url: `redis://${host}:${port}`,
    host,
    port,
    get pid() {
      return running.pid;
    },
    stop,
    async restart() {
      if (stopped !== undefined) throw new Error("This redis-server was stopped; start another one.");
      await running.end();
      running = await launch(program, folder);
    },
    kill9: () => running.kill(),
    [Symbol.asyncDispose]: stop,
  };
}
