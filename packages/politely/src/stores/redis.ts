import type { LimitOperation, Operation, ReplyTo } from "../shared/operation.js";
import { checkOptionNames } from "./checkOptionNames.js";
import { type IoredisClient, type NodeRedisClient, runnerOf } from "./redis/client.js";
import { clientErrors } from "./redis/clientErrors.js";
import { RedisLink } from "./redis/link.js";
import { numberAt, type Reply } from "./redis/reply.js";
import { type ScriptTexts, scriptTexts } from "./redis/scripts.js";
import { isPlain, readTake } from "./redis/takeWire.js";
import { leaseArguments, limitArguments, readLease, readLook, readRenew, readSettle } from "./redis/wire.js";
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

/**
 * Keeps limits in Redis, shared by all processes that connect to it. Redis 6 or later, or Valkey; single, Sentinel or Cluster.
 *
 * `client` is one of `ioredis` or of `redis` (node-redis); you connect and close it. Each operation is one round trip: a script that decides on the server, by the
 * server's clock, over all keys at once. Every key has an expiry. Nothing is sent before the first use.
 *
 * Throws `TypeError` or `RangeError` for a wrong argument.
 */
export function redisStore(client: IoredisClient | NodeRedisClient, options: RedisOptions = {}): Store {
  checkOptionNames(options, ["prefix", "timeoutMs"], "redisStore");
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
  const link = new RedisLink({ runner: runnerOf(client), texts, timeoutMs, read: readReply });
  const errors = clientErrors(client);
  const keyPrefix = `${prefix}k:`;
  const askerPrefix = `${prefix}a:`;

  return {
    name: "Redis",
    timeline: "epoch",
    lastError: () => errors.last(),
    transact<Op extends Operation>(keys: readonly string[], operation: Op): Promise<ReplyTo<Op>> {
      errors.listen();
      const names: string[] = [];
      for (const key of keys) names.push(keyPrefix + key);
      if ("asker" in operation && operation.asker !== "") names.push(askerPrefix + operation.asker);
      const args = operation.kind === "lease" ? leaseArguments(operation) : limitArguments(operation, keys.length);
      const isAlike = operation.kind === "take" && names.length === 2 && isPlain(operation);
      return link.ask({ operation, keys, names, args }, isAlike ? args[1] : undefined) as Promise<ReplyTo<Op>>;
    },
  };
}

function readReply(
  operation: Operation,
  reply: Reply,
  keyCount: number,
): ReplyTo<LimitOperation> | ReplyTo<{ kind: "lease" }> {
  switch (operation.kind) {
    case "take":
      return readTake(reply, keyCount);
    case "settle":
      return readSettle(reply, keyCount);
    case "renew":
      return readRenew(reply, operation.places);
    case "look":
      return readLook(reply, operation);
    case "lease":
      return readLease(reply);
    case "leave":
    case "record":
    case "set":
      return { nowUs: numberAt(reply, 0) };
  }
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
