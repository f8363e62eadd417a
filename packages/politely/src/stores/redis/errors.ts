import { StoreError } from "../../errors.js";

/** What errors of Redis mean, by how they begin or what they say, and what to do. */
const PASSING: Readonly<Record<string, string>> = {
  "^OOM ":
    "Redis has reached its maxmemory, and nothing was granted. Give it more memory, and keep its maxmemory-policy at noeviction.",
  "^READONLY ":
    "Redis is a replica here, which takes no writes, and nothing was granted. Connect to the master; after a failover the client has to connect anew.",
  "^LOADING ": "Redis is still reading its data. Try again soon.",
  "^BUSY ": "Redis is busy with somebody's long script. Try again soon.",
  "^MISCONF ": "Redis takes no writes since it cannot save its data. Look at its disk and its log.",
  "^NOREPLICAS ":
    "Redis takes no writes since too few replicas follow it. Look at min-replicas-to-write and the replicas.",
  "^(CLUSTERDOWN|MASTERDOWN|TRYAGAIN|MOVED|ASK) |Too many Cluster redirections|Failed to refresh slots":
    "The Redis Cluster is not whole, or is moving slots. Look at its nodes, and try again soon.",
};
/** The same for what waiting does not mend. */
const LASTING: Readonly<Record<string, string>> = {
  "^(NOAUTH|WRONGPASS) |invalid password|invalid username-password":
    "Redis does not know this user or password. Give the client the right ones.",
  "^NOPERM |The user executing the script can't|ACL failure in script":
    "The Redis user may not do this. Allow it the commands that docs/store-redis.md names, for the keys with the store's prefix.",
  "^CROSSSLOT ":
    "The keys are in several slots of the Redis Cluster. Give the store a prefix with a hash tag, such as {politely}:.",
  "^(ERR )?unknown (Redis )?command":
    "This server lacks what the store needs. Use Redis 6 or later, or Valkey; it must have the commands that docs/store-redis.md names, under these names.",
};

/** What Redis puts before the reason when a script fails: version 6 also the script, which later versions put behind. */
const SCRIPT_FIRST = /^(ERR Error running script .*)?(@user_script: ?\d+: )+-?|^ERR (?=[A-Z]+ )/;

/** The time and the calendar that a script lacks a period of; undefined for any other error. */
export function missingPeriod(error: unknown): { readonly wallMs: number; readonly calendar: string } | undefined {
  const [, wallMs, calendar] = /POLITELYPERIOD (\d+) (\w+ [\w/+-]+)/.exec(messageOf(error)) ?? [];
  return calendar === undefined ? undefined : { wallMs: Number(wallMs), calendar };
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Makes a `StoreError` of what a client threw, with a sentence about what to do. */
export function redisError(error: unknown, keys: readonly string[], isClosed: boolean): StoreError {
  if (error instanceof StoreError) return error;
  const message = messageOf(error).replace(SCRIPT_FIRST, "");
  const [, version, name] = /^POLITELY(?:FOREIGN|VERSION (\d+)) (.*)$/s.exec(message) ?? [];
  if (name !== undefined) {
    const text =
      version === undefined
        ? "is not one of politely's. Give the store a prefix of its own, or remove that key."
        : `has version ${version}, and this version of politely reads 2 only. Use one version, or another prefix, or remove that key.`;
    return new StoreError(`The value of the Redis key "${name}" ${text}`, { cause: error, isLasting: true });
  }
  if (isClosed) {
    return new StoreError(
      "The Redis client is not connected and will not be: it was closed, gave up, or was never told to connect. Connect it before the first use, and close it after the last limiter that uses it.",
      { cause: error, isLasting: true },
    );
  }
  for (const meanings of [LASTING, PASSING]) {
    const meaning = Object.keys(meanings).find((pattern) => new RegExp(pattern, "i").test(message));
    if (meaning !== undefined) {
      return new StoreError(meanings[meaning], { cause: error, isLasting: meanings === LASTING });
    }
  }
  return new StoreError(
    `Redis could not be asked about "${keys.join('", "')}": ${message}. Look at the server and the network to it.`,
    { cause: error },
  );
}

/** The error for an operation that nobody answered in time. */
export function silenceError(timeoutMs: number): StoreError {
  return new StoreError(
    `Redis has not answered within ${timeoutMs} ms; what was asked may have happened or not. Look at the server and the network to it.`,
  );
}
