import { checkNames } from "../core/checkNames.js";
import type { Operation, ReplyTo } from "./operations.js";
import {
  canListen,
  checkClient,
  clientErrors,
  type IoredisClient,
  isClosed,
  listen,
  type NodeRedisClient,
  type RedisClient,
  ScriptRunner,
} from "./redis/client.js";
import { missingPeriod, redisError } from "./redis/errors.js";
import { scriptText } from "./redis/script.js";
import { argumentOf, Calendars, readReply } from "./redis/wire.js";
import type { Store } from "./store.js";

/** How limits are kept in Redis. */
export interface RedisOptions {
  /**
   * Begins every key of the store, at most 200 characters. It must have a hash tag, `{…}`, so that all keys are in one slot of a
   * Redis Cluster. Default `{politely}:`. Stores with different prefixes share nothing.
   */
  readonly prefix?: string;
  /** An operation is answered within this time, or fails with `StoreError`. In milliseconds, from 100 to 600,000. Default 5,000. */
  readonly timeoutMs?: number;
}

const defaultPrefix = "{politely}:";
/** Calendars that an operation may turn out to need, one after the other. */
const PERIODS_MOST = 8;
/** So many operations at most are one call of the script. */
const TOGETHER_MOST = 16;

/** An operation that waits to be sent, and whoever waits for it. */
interface Asked {
  readonly names: readonly string[];
  readonly operation: Operation;
  readonly resolve: (reply: unknown) => void;
  readonly reject: (reason: unknown) => void;
}

/**
 * Keeps limits in Redis, shared by all processes that connect to it. Redis 6 or later, or Valkey; single, Sentinel or Cluster.
 *
 * `client` is one of `ioredis` or of `redis` (node-redis); you connect and close it. Each operation is one round trip: a script that decides on the server, by the
 * server's clock, over all keys at once. Every key has an expiry. Nothing is sent before the first use.
 *
 * Throws `TypeError` or `RangeError` for a wrong argument.
 */
export function redisStore(client: IoredisClient | NodeRedisClient, options: RedisOptions = {}): Store {
  checkNames(options, ["prefix", "timeoutMs"], "options of redisStore");
  return scriptedStore(client, options, scriptText());
}

/** A store that runs this script: that of `scriptText`, with another clock in tests. */
export function scriptedStore(client: RedisClient, options: RedisOptions, text: string): Store {
  const { prefix = defaultPrefix, timeoutMs = 5_000 } = options;
  check(prefix, timeoutMs);
  checkClient(client);
  const runner = new ScriptRunner(client, text, timeoutMs);
  const errors = clientErrors(client);
  const calendars = new Calendars();
  const channels = `${prefix}w:`;
  const waiting: Asked[] = [];

  /** Sends what has come in this turn: operations that are asked for together share a call. */
  function send(): void {
    const some = waiting.splice(0);
    if (some.length === 0) return;
    const replies = run(some);
    for (const [index, { resolve, reject }] of some.entries()) {
      replies.then((list) => resolve(Array.isArray(list) ? list[index] : list), reject);
    }
  }

  async function run(some: readonly Asked[]): Promise<unknown> {
    const operations = some.map(({ operation }) => operation);
    const names = some.flatMap((asked) => asked.names);
    return runner.run(names, argumentOf(operations, calendars, channels));
  }

  function ask(names: readonly string[], operation: Operation): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const count = waiting.push({ names, operation, resolve, reject });
      if (count === 1) queueMicrotask(() => queueMicrotask(send));
      // Redis works on these while the rest is made ready.
      if (count === TOGETHER_MOST) send();
    });
  }

  async function transact(keys: readonly string[], operation: Operation): Promise<object> {
    errors.listen();
    const names = keys.map((key) => `${prefix}k:${key}`);
    for (let attempt = 1; ; attempt++) {
      try {
        return readReply(operation, await ask(names, operation));
      } catch (error) {
        const missing = missingPeriod(error);
        if (missing === undefined || attempt > PERIODS_MOST) throw redisError(error, keys, isClosed(client));
        calendars.add(missing.calendar, missing.wallMs);
      }
    }
  }

  return {
    name: "Redis",
    timeline: "epoch",
    lastError: () => errors.last(),
    ...(canListen(client)
      ? { listen: (process: string, onWake: (asker: string) => void) => listen(client, channels + process, onWake) }
      : {}),
    transact: <Op extends Operation>(keys: readonly string[], operation: Op) =>
      transact(keys, operation) as Promise<ReplyTo<Op>>,
  };
}

function check(prefix: string, timeoutMs: number): void {
  if (typeof prefix !== "string" || prefix.length > 200 || !/^[^{]*\{[^}]+\}/.test(prefix)) {
    throw new RangeError(
      `prefix must have a hash tag, so that all keys of a call are in one slot of a cluster, and at most 200 characters: "{politely}:" or "{shop}:limits:"; got ${JSON.stringify(prefix)}`,
    );
  }
  if (!(Number.isInteger(timeoutMs) && timeoutMs >= 100 && timeoutMs <= 600_000)) {
    throw new RangeError(`timeoutMs must be a whole number from 100 to 600,000; got ${timeoutMs}`);
  }
}
