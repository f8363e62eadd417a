import type { Redis } from "ioredis";

/** Knows when the connection of a client breaks. One listener serves all who use the client. */
export class RedisConnection {
  static readonly #known = new WeakMap<Redis, RedisConnection>();
  /** How often it has broken. */
  breaks = 0;
  /** Told when it breaks: those who wait for an answer. */
  readonly #asking = new Set<(error: Error) => void>();

  static of(client: Redis): RedisConnection {
    let connection = RedisConnection.#known.get(client);
    if (connection === undefined) {
      connection = new RedisConnection(client);
      RedisConnection.#known.set(client, connection);
    }
    return connection;
  }

  private constructor(client: Redis) {
    client.on("close", () => {
      this.breaks += 1;
      for (const reject of this.#asking) reject(broken());
    });
  }

  /** Does `work`, and rejects when the connection breaks meanwhile, though the client itself would ask again on the next one. */
  whileWhole<Answer>(work: () => Promise<Answer>): Promise<Answer> {
    return new Promise((resolve, reject) => {
      this.#asking.add(reject);
      work()
        .then(resolve, reject)
        .finally(() => this.#asking.delete(reject));
    });
  }
}

/** What is thrown then. */
export function broken(): Error {
  return new Error("the connection to Redis has broken");
}
