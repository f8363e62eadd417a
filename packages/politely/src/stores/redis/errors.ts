import { StoreError } from "../../errors.js";

/** What an operation was about, for messages. */
export interface Errand {
  /** As the caller named them. */
  readonly keys: readonly string[];
  /** As Redis knows them. */
  readonly names: readonly string[];
  readonly isClosed: boolean;
}

/** What a code of Redis means and what to do; `isLasting` where waiting does not mend it. */
interface Meaning {
  readonly code: RegExp;
  readonly text: string;
  readonly isLasting?: boolean;
}

const MEANINGS: readonly Meaning[] = [
  {
    code: /^OOM /,
    text: "Redis has reached its maxmemory, and nothing was granted. Give it more memory, and keep its maxmemory-policy at noeviction.",
  },
  {
    code: /^READONLY /,
    text: "Redis is a replica here, which takes no writes, and nothing was granted. Connect to the master; after a failover the client has to connect anew.",
  },
  {
    code: /^(NOAUTH|WRONGPASS) |invalid password|invalid username-password/i,
    text: "Redis does not know this user or password. Give the client the right ones.",
    isLasting: true,
  },
  {
    code: /^NOPERM |The user executing the script can't|ACL failure in script/,
    text: "The Redis user may not do this. Allow it the commands that docs/store-redis.md names, for the keys with the store's prefix.",
    isLasting: true,
  },
  {
    code: /^CROSSSLOT /,
    text: "The keys are in several slots of the Redis Cluster. Give the store a prefix with a hash tag, such as {politely}:.",
    isLasting: true,
  },
  {
    code: /^(ERR )?unknown (Redis )?command/i,
    text: "This server lacks what the store needs. Use Redis 6 or later, or Valkey; it must have the commands that docs/store-redis.md names, under these names.",
    isLasting: true,
  },
  { code: /^LOADING /, text: "Redis is still reading its data. Try again soon." },
  { code: /^BUSY /, text: "Redis is busy with somebody's long script. Try again soon." },
  {
    code: /^MISCONF /,
    text: "Redis takes no writes since it cannot save its data. Look at its disk and its log.",
  },
  {
    code: /^NOREPLICAS /,
    text: "Redis takes no writes since too few replicas follow it. Look at min-replicas-to-write and the replicas.",
  },
  {
    code: /^(CLUSTERDOWN|MASTERDOWN|TRYAGAIN|MOVED|ASK) |Too many Cluster redirections|Failed to refresh slots/i,
    text: "The Redis Cluster is not whole, or is moving slots. Look at its nodes, and try again soon.",
  },
];

/** What Redis puts before the reason when a script fails: version 6 also the script, which later versions put behind. */
const SCRIPT_FIRST = /^(ERR Error running script .*)?@user_script: ?\d+: -?|^ERR (?=[A-Z]+ )/;

/** The time and the calendar that a script lacks a period of; undefined for any other error. */
export function missingPeriod(error: unknown): { readonly wallMs: number; readonly calendar: string } | undefined {
  const [, wallMs, calendar] = /POLITELYPERIOD (\d+) (\w+ [\w/+-]+)/.exec(messageOf(error)) ?? [];
  return calendar === undefined ? undefined : { wallMs: Number(wallMs), calendar };
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Makes a `StoreError` of what a client threw, with a sentence about what to do. */
export function redisError(error: unknown, { keys, names, isClosed }: Errand): StoreError {
  if (error instanceof StoreError) return error;
  const message = messageOf(error).replace(SCRIPT_FIRST, "");
  const [, code, place, version] = /POLITELY(FOREIGN|VERSION) (\d+) ?(\d*)/.exec(message) ?? [];
  if (code !== undefined) {
    const name = `The value of the Redis key "${names[Number(place) - 1]}"`;
    const text =
      code === "FOREIGN"
        ? `${name} is not one of politely's. Give the store a prefix of its own, or remove that key.`
        : `${name} has version ${version}, and this version of politely reads 2 only. Use one version, or another prefix, or remove that key.`;
    return new StoreError(text, { cause: error, isLasting: true });
  }
  if (isClosed) {
    return new StoreError(
      "The Redis client is not connected and will not be: it was closed, gave up, or was never told to connect. Connect it before the first use, and close it after the last limiter that uses it.",
      { cause: error, isLasting: true },
    );
  }
  const meaning = MEANINGS.find((candidate) => candidate.code.test(message));
  if (meaning !== undefined) {
    return new StoreError(meaning.text, { cause: error, isLasting: meaning.isLasting ?? false });
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
