import { checkNames } from "../core/checkNames.js";
import type { Operation, ReplyTo } from "./operations.js";
import { Calendars } from "./redis/calendars.js";
import { type IoredisClient, type NodeRedisClient, runnerOf } from "./redis/client.js";
import { clientErrors } from "./redis/clientErrors.js";
import { missingPeriod, redisError } from "./redis/errors.js";
import { RedisLink } from "./redis/link.js";
import { type ScriptTexts, scriptTexts } from "./redis/scripts.js";
import { canListen, listen } from "./redis/wakes.js";
import { argumentOf, readReply, rulesOf } from "./redis/wire.js";
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
  return scriptedStore(client, options, scriptTexts());
}

/** A store that runs these scripts: those of `scriptTexts`, with another clock in tests. */
export function scriptedStore(
  client: IoredisClient | NodeRedisClient,
  options: RedisOptions,
  texts: ScriptTexts,
): Store {
  const { prefix = defaultPrefix, timeoutMs = 5_000 } = options;
  check(prefix, timeoutMs);
  const link = new RedisLink(runnerOf(client), texts, timeoutMs);
  const errors = clientErrors(client);
  const calendars = new Calendars();
  const channels = `${prefix}w:`;

  function argumentsOf(operation: Operation): string[] {
    if (operation.kind !== "lease") {
      const periods = calendars.bounds(rulesOf(operation).map(({ quota }) => quota));
      return [argumentOf(operation, periods, channels)];
    }
    const { act, ttlUs, holder, label } = operation;
    return [act, String(ttlUs), holder, label];
  }

  async function transact(keys: readonly string[], operation: Operation): Promise<object> {
    errors.listen();
    const names = keys.map((key) => `${prefix}k:${key}`);
    for (let attempt = 1; ; attempt++) {
      try {
        const reply = readReply(operation, await link.run(operation.kind, names, argumentsOf(operation)));
        calendars.hear(reply.nowUs / 1000);
        return reply;
      } catch (error) {
        const missing = missingPeriod(error);
        if (missing === undefined || attempt > PERIODS_MOST) {
          throw redisError(error, { keys, names, isClosed: link.runner.isClosed() });
        }
        calendars.hear(missing.wallMs);
        calendars.add(missing.calendar);
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
