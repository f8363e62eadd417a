/** The part of an ioredis client that the store calls. `Redis` and `Cluster` fit. */
export interface IoredisClient {
  evalsha(sha: string, keyCount: number, ...keysAndArguments: string[]): Promise<unknown>;
  eval(script: string, keyCount: number, ...keysAndArguments: string[]): Promise<unknown>;
}

/** Keys and arguments, as node-redis takes them. */
export interface NodeRedisEval {
  keys: string[];
  arguments: string[];
}

/** The part of a client of `redis` (node-redis) that the store calls. What `createClient`, `createClientPool`, `createCluster` and `createSentinel` return fits. */
export interface NodeRedisClient {
  evalSha(sha: string, options: NodeRedisEval): Promise<unknown>;
  eval(script: string, options: NodeRedisEval): Promise<unknown>;
}

/** A script, and the name that Redis knows it by. */
export interface Script {
  readonly text: string;
  readonly sha: string;
}

/** Runs scripts on a client of either kind. */
export interface ScriptRunner {
  /** Runs a script that the server has. Rejects with the client's own error: `NOSCRIPT` when it does not have it. */
  run(script: Script, keys: string[], args: string[]): Promise<unknown>;
  /** Runs a script and lets the server keep it. */
  load(script: Script, keys: string[], args: string[]): Promise<unknown>;
  /** The client was closed, and stays so. */
  isClosed(): boolean;
}

/** Finds out which kind of client it is. Throws `TypeError` for anything else. */
export function runnerOf(client: IoredisClient | NodeRedisClient): ScriptRunner {
  if (isClient<NodeRedisClient>(client, "evalSha")) {
    return {
      run: ({ sha }, keys, args) => client.evalSha(sha, { keys, arguments: args }),
      load: ({ text }, keys, args) => client.eval(text, { keys, arguments: args }),
      isClosed: () => "isOpen" in client && client.isOpen === false,
    };
  }
  if (isClient<IoredisClient>(client, "evalsha")) {
    return {
      run: ({ sha }, keys, args) => client.evalsha(sha, keys.length, ...keys, ...args),
      load: ({ text }, keys, args) => client.eval(text, keys.length, ...keys, ...args),
      isClosed: () => "status" in client && client.status === "end",
    };
  }
  throw new TypeError(
    `redisStore needs a client of ioredis or of redis (node-redis), with the methods evalsha or evalSha, and eval; got ${kindOf(client)}`,
  );
}

function isClient<Client>(value: unknown, method: "evalsha" | "evalSha"): value is Client {
  if (typeof value !== "object" || value === null) return false;
  const methods = value as Readonly<Record<string, unknown>>;
  return typeof methods[method] === "function" && typeof methods.eval === "function";
}

function kindOf(value: unknown): string {
  if (value === null || typeof value !== "object") return String(value);
  return `an object of class ${value.constructor?.name ?? "Object"}`;
}
