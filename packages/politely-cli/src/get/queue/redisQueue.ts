import type { Redis } from "ioredis";
import { broken, RedisConnection } from "./redisConnection.js";
import { redisScripts } from "./redisScripts.js";
import { noCounts } from "./rowCounts.js";
import type {
  BeginOptions,
  FinishedUrl,
  KeyCounts,
  QueueCounts,
  QueuedUrl,
  QueueOptions,
  RenewOptions,
  UrlQueue,
} from "./urlQueue.js";

const COUNTS = ["total", "waiting", "fetched", "refused", "failed"] as const;
/** Workers that begin at the same time get their turn one after the other. */
const MAX_TRIES = 100;
type CountName = (typeof COUNTS)[number];

/**
 * Keeps a list in Redis, under keys that begin with `{politely:get:NAME}:`. Time is the server's. The caller opens and closes `client`.
 *
 * A connection that breaks is told once, by what is asked then or next, also where the client would ask again by itself: a server that was
 * started again may have forgotten something.
 */
export function redisQueue(client: Redis, options: QueueOptions): UrlQueue {
  return new RedisQueue(client, options);
}

class RedisQueue implements UrlQueue {
  readonly #prefix: string;
  readonly #worker: string;
  readonly #leaseMs: number;
  readonly #connection: RedisConnection;
  /** Breaks of the connection that were told. */
  #toldBreaks: number;

  constructor(
    readonly client: Redis,
    { name, worker, leaseMs }: QueueOptions,
  ) {
    this.#prefix = `{politely:get:${name}}:`;
    this.#worker = worker;
    this.#leaseMs = leaseMs;
    this.#connection = RedisConnection.of(client);
    this.#toldBreaks = this.#connection.breaks;
  }

  async add(urls: readonly QueuedUrl[]): Promise<void> {
    await this.#run("add", ...urls.flatMap(({ url, key }) => [url, key]));
  }

  async begin({ again }: BeginOptions): Promise<boolean> {
    const mode = again === true ? "yes" : again === false ? "no" : again;
    for (let tries = 1; ; tries++) {
      // Also what somebody put aside who was killed then.
      await this.#moveAside();
      const answer = Number(await this.#run("begin", mode));
      if (answer >= 0) {
        await this.#moveAside();
        return answer === 1;
      }
      if (tries === MAX_TRIES) {
        throw new Error(`list "${this.#prefix}" is begun by others again and again: no turn in ${MAX_TRIES} tries`);
      }
    }
  }

  async keys(after: string, count: number): Promise<readonly string[]> {
    const from = after === "" ? "-" : `(${after}`;
    return this.#ask(() => this.client.zrangebylex(`${this.#prefix}keys`, from, "+", "LIMIT", 0, count));
  }

  async claim(key: string, count: number): Promise<readonly string[]> {
    return (await this.#run("claim", this.#worker, key, count, this.#leaseMs)) as string[];
  }

  async finish(urls: readonly FinishedUrl[]): Promise<void> {
    if (urls.length === 0) return;
    await this.#run("finish", ...urls.flatMap(({ url, key, outcome }) => [url, key, outcome]));
  }

  async renew({ takesOver = true }: RenewOptions = {}): Promise<number> {
    return Number(await this.#run("renew", this.#worker, this.#leaseMs, takesOver ? 1 : 0));
  }

  async counts(): Promise<QueueCounts> {
    const columns = await this.#ask(() =>
      Promise.all(COUNTS.map((name) => this.client.hvals(`${this.#prefix}count:${name}`))),
    );
    const sums = columns.map((column) => column.reduce((sum, value) => sum + Number(value), 0));
    return { ...noCounts(""), ...Object.fromEntries(COUNTS.map((name, index) => [name, sums[index]])) };
  }

  async countsByKey(count: number): Promise<readonly KeyCounts[]> {
    const columns = await this.#ask(() =>
      Promise.all(COUNTS.map((name) => this.client.hgetall(`${this.#prefix}count:${name}`))),
    );
    const of = (name: CountName, key: string): number => Number(columns[COUNTS.indexOf(name)][key] ?? 0);
    return Object.keys(columns[0])
      .map(
        (key): KeyCounts => ({
          ...noCounts(key),
          ...Object.fromEntries(COUNTS.map((name) => [name, of(name, key)])),
        }),
      )
      .sort((a, b) => leftOf(b) - leftOf(a))
      .slice(0, count);
  }

  async close(): Promise<void> {
    await this.#run("leave", this.#worker);
  }

  /** Lets everything wait again that was put aside, some at a time, so that nobody waits long for Redis. Several workers may do so at once. */
  async #moveAside(): Promise<void> {
    for (const name of ["failed", "fetched", "refused"]) {
      let cursor = "0";
      do cursor = String(await this.#run("again", name, cursor));
      while (cursor !== "0");
    }
  }

  #run(name: keyof typeof redisScripts, ...args: (string | number)[]): Promise<unknown> {
    return this.#ask(() => this.client.eval(redisScripts[name], 1, this.#prefix, ...args));
  }

  async #ask<Answer>(work: () => Promise<Answer>): Promise<Answer> {
    const { breaks } = this.#connection;
    if (breaks === this.#toldBreaks) return this.#connection.whileWhole(work);
    this.#toldBreaks = breaks;
    throw broken();
  }
}

function leftOf({ total, fetched, refused, failed }: QueueCounts): number {
  return total - fetched - refused - failed;
}
