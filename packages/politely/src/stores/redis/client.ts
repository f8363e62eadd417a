import { silenceError } from "./errors.js";

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

export type RedisClient = IoredisClient | NodeRedisClient;

/** More than the store needs: what clients have beside scripts, all of them or some. */
interface Extras {
  on(event: "error" | "ready" | "message", listener: (first: unknown, message: string) => void): unknown;
  listenerCount(event: "error"): number;
  /** A second connection, for only one that does nothing else can subscribe. */
  duplicate(): Extras;
  subscribe(channel: string, listener?: (message: string) => void): Promise<unknown>;
  /** node-redis connects when it is told to, and then takes the listener with `subscribe`. */
  connect(): Promise<unknown>;
  destroy(): unknown;
  disconnect(): unknown;
  readonly isOpen: boolean;
  readonly status: string;
}

const extrasOf = (client: RedisClient): Partial<Extras> => client as Partial<Extras>;

/** Throws `TypeError` for what is no client of either kind. */
export function checkClient(client: unknown): asserts client is RedisClient {
  const { evalsha, evalSha, eval: run } = (client ?? {}) as Partial<Record<"evalsha" | "evalSha" | "eval", unknown>>;
  if (typeof run === "function" && (typeof evalsha === "function" || typeof evalSha === "function")) return;
  const got =
    typeof client === "object" && client !== null
      ? `an object of class ${client.constructor?.name ?? "Object"}`
      : JSON.stringify(client);
  throw new TypeError(
    `redisStore needs a client of ioredis or of redis (node-redis), with the methods evalsha or evalSha, and eval; got ${got}`,
  );
}

/** Whether the client was closed, and stays so. */
export function isClosed(client: RedisClient): boolean {
  const { isOpen, status } = extrasOf(client);
  return "evalSha" in client ? isOpen === false : status === "end";
}

/** Runs a script by its digest, and sends the text where the server does not have it. */
export class ScriptRunner {
  #sha: Promise<string> | undefined;

  constructor(
    readonly client: RedisClient,
    readonly text: string,
    readonly timeoutMs: number,
  ) {}

  /** Rejects with what the client throws, or with `StoreError` when there is no answer in time. */
  async run(keys: string[], argument: string): Promise<unknown> {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const silence = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(silenceError(this.timeoutMs)), this.timeoutMs);
    });
    try {
      return await Promise.race([this.#ask(keys, argument), silence]);
    } finally {
      clearTimeout(timer);
    }
  }

  async #ask(keys: string[], argument: string): Promise<unknown> {
    const { client, text } = this;
    this.#sha ??= shaOf(text);
    const sha = await this.#sha;
    const options = { keys, arguments: [argument] };
    try {
      if ("evalSha" in client) return await client.evalSha(sha, options);
      return await client.evalsha(sha, keys.length, ...keys, argument);
    } catch (error) {
      if (!(error instanceof Error && error.message.startsWith("NOSCRIPT"))) throw error;
    }
    return "evalSha" in client ? client.eval(text, options) : client.eval(text, keys.length, ...keys, argument);
  }
}

async function shaOf(text: string): Promise<string> {
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-1", new TextEncoder().encode(text)));
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** What a client reports beside its answers. */
interface ClientErrors {
  /** Begins to listen if it has not: only where somebody else does, since a client whose errors nobody hears says so itself. */
  listen(): void;
  /** The last error that the client has reported; undefined when it has been ready since, or reported none. */
  last(): unknown;
}

/** Those who follow a client, for as long as it is there. */
const followers = new WeakMap<object, ClientErrors>();

/**
 * Follows the errors of a client that keeps what it is asked for while it tries to connect: the questions do not say why they are not answered.
 *
 * Two listeners at most for a client, `error` and `ready`, however many stores ask for it. They stay as long as the client.
 */
export function clientErrors(client: RedisClient): ClientErrors {
  let last: unknown;
  let isListening = false;
  const own: ClientErrors = followers.get(client) ?? {
    listen() {
      const emitter = client as RedisClient & Partial<Extras>;
      if (isListening || !emitter.on || !emitter.listenerCount || emitter.listenerCount("error") === 0) return;
      isListening = true;
      emitter.on("error", (error) => {
        last = error;
      });
      emitter.on("ready", () => {
        last = undefined;
      });
    },
    last: () => last,
  };
  followers.set(client, own);
  return own;
}

/** Whether a client can be listened with. */
export function canListen(client: RedisClient): boolean {
  return typeof extrasOf(client).duplicate === "function";
}

/**
 * Calls `onWake` with what is published on a channel, until the returned function is called.
 *
 * Nothing fails where that is not possible: those who wait then look again by themselves.
 */
export function listen(client: RedisClient, channel: string, onWake: (asker: string) => void): () => void {
  const ignore = (): void => undefined;
  const isNodeRedis = "evalSha" in client;
  try {
    const own = (client as RedisClient & Extras).duplicate();
    own.on("error", ignore);
    if (!isNodeRedis) own.on("message", (_, asker) => onWake(asker));
    const ready = isNodeRedis ? Promise.resolve(own.connect()) : Promise.resolve();
    ready.then(() => own.subscribe(channel, ...(isNodeRedis ? [onWake] : []))).catch(ignore);
    return () => (isNodeRedis ? own.destroy() : own.disconnect());
  } catch {
    return ignore;
  }
}
