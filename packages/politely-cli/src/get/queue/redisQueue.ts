import type { Redis } from "ioredis";
import { redisScripts } from "./redisScripts.js";
import { noCounts } from "./rowCounts.js";
import type {
  BeginOptions,
  FinishedUrl,
  KeyCounts,
  QueueCounts,
  QueuedUrl,
  QueueOptions,
  UrlQueue,
} from "./urlQueue.js";

const COUNTS = ["total", "waiting", "fetched", "refused", "failed"] as const;
type CountName = (typeof COUNTS)[number];

/** Keeps a list in Redis, under keys that begin with `{politely:get:NAME}:`. Time is the server's. The caller opens and closes `client`. */
export function redisQueue(client: Redis, options: QueueOptions): UrlQueue {
  return new RedisQueue(client, options);
}

class RedisQueue implements UrlQueue {
  readonly #prefix: string;
  readonly #worker: string;
  readonly #leaseMs: number;

  constructor(
    readonly client: Redis,
    { name, worker, leaseMs }: QueueOptions,
  ) {
    this.#prefix = `{politely:get:${name}}:`;
    this.#worker = worker;
    this.#leaseMs = leaseMs;
  }

  async add(urls: readonly QueuedUrl[]): Promise<void> {
    await this.#run("add", ...urls.flatMap(({ url, key }) => [url, key]));
  }

  async begin({ again }: BeginOptions): Promise<boolean> {
    await this.#drain("failed");
    const { total, fetched, refused, failed } = await this.counts();
    const isAgain = again === true || (again === "if-finished" && fetched + refused + failed === total);
    if (!isAgain || fetched + refused === 0) return false;
    await this.#drain("fetched");
    await this.#drain("refused");
    return true;
  }

  async keys(after: string, count: number): Promise<readonly string[]> {
    const from = after === "" ? "-" : `(${after}`;
    return this.client.zrangebylex(`${this.#prefix}keys`, from, "+", "LIMIT", 0, count);
  }

  async claim(key: string, count: number): Promise<readonly string[]> {
    return (await this.#run("claim", this.#worker, key, count, this.#leaseMs)) as string[];
  }

  async finish(urls: readonly FinishedUrl[]): Promise<void> {
    if (urls.length === 0) return;
    await this.#run("finish", ...urls.flatMap(({ url, key, outcome }) => [url, key, outcome]));
  }

  async renew(): Promise<number> {
    return Number(await this.#run("renew", this.#worker, this.#leaseMs));
  }

  async counts(): Promise<QueueCounts> {
    const columns = await Promise.all(COUNTS.map((name) => this.client.hvals(`${this.#prefix}count:${name}`)));
    const sums = columns.map((column) => column.reduce((sum, value) => sum + Number(value), 0));
    return { ...noCounts(""), ...Object.fromEntries(COUNTS.map((name, index) => [name, sums[index]])) };
  }

  async countsByKey(count: number): Promise<readonly KeyCounts[]> {
    const columns = await Promise.all(COUNTS.map((name) => this.client.hgetall(`${this.#prefix}count:${name}`)));
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

  /** Lets all URLs wait again that ended in one way, some at a time, so that nobody waits long for Redis. */
  async #drain(name: "failed" | "fetched" | "refused"): Promise<void> {
    const { fetched, refused, failed } = await this.counts();
    // Only those that were there at the start: others may end in the same way meanwhile.
    let left = { fetched, refused, failed }[name];
    while (left > 0) {
      const moved = Number(await this.#run("again", name));
      if (moved === 0 && (await this.client.hlen(`${this.#prefix}${name}`)) === 0) return;
      left -= Math.max(moved, 1);
    }
  }

  #run(name: keyof typeof redisScripts, ...args: (string | number)[]): Promise<unknown> {
    return this.client.eval(redisScripts[name], 1, this.#prefix, ...args);
  }
}

function leftOf({ total, fetched, refused, failed }: QueueCounts): number {
  return total - fetched - refused - failed;
}
