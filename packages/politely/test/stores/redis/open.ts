import { Cluster, Redis } from "ioredis";
import { createClient, createCluster } from "redis";
import type { Rule } from "../../../src/core/rule.js";
import type { AskedKey } from "../../../src/stores/operations.js";
import { type RedisOptions, redisStore } from "../../../src/stores/redis.js";
import type { Store } from "../../../src/stores/store.js";
import { Asker } from "./asker.js";
import { keyOf } from "./rules.js";

/** A store, and how to end its client. */
export interface Opened {
  readonly store: Store;
  close(): Promise<void>;
}

/** The kinds of clients, each with a store on a server. */
export const CLIENTS: Readonly<Record<string, (url: string, options?: RedisOptions) => Promise<Opened>>> = {
  ioredis: async (url, options) => {
    const client = quiet(new Redis(url));
    return { store: redisStore(client, options), close: async () => client.disconnect() };
  },
  "node-redis": async (url, options) => {
    const client = quiet(createClient({ url }));
    await client.connect();
    return { store: redisStore(client, options), close: async () => client.destroy() };
  },
};

/** The same for clusters. */
export const CLUSTER_CLIENTS: Readonly<
  Record<
    string,
    (nodes: readonly { host: string; port: number; url: string }[], options?: RedisOptions) => Promise<Opened>
  >
> = {
  ioredis: async (nodes, options) => {
    const client = quiet(new Cluster(nodes.map(({ host, port }) => ({ host, port }))));
    return { store: redisStore(client, options), close: async () => client.disconnect() };
  },
  "node-redis": async (nodes, options) => {
    const client = quiet(createCluster({ rootNodes: nodes.map(({ url }) => ({ url })) }));
    await client.connect();
    return { store: redisStore(client, options), close: async () => client.destroy() };
  },
};

/** What goes wrong comes out of the calls; without a listener it would be printed too, or end the process. */
export function quiet<Client extends { on(event: "error", listener: () => void): unknown }>(client: Client): Client {
  client.on("error", () => undefined);
  return client;
}

/** A store, a second client of the same place, and how to end both. */
interface OpenStore {
  readonly store: Store;
  another(): Promise<Store>;
  close(): Promise<void>;
}

/** Two clients of one place, as the suite of all stores wants them. */
export async function openTwo(open: () => Promise<Opened>): Promise<OpenStore> {
  const opened = [await open()];
  return {
    store: opened[0].store,
    async another() {
      opened.push(await open());
      return opened[1].store;
    },
    async close() {
      await Promise.all(opened.map(({ close }) => close()));
    },
  };
}

/**
 * Two clients of one place for all cases of the suite, which have keys of their own: they take long to find their way. The second function ends them.
 */
export function sharedTwo(open: () => Promise<Opened>): readonly [() => Promise<OpenStore>, () => Promise<void>] {
  let opened: Promise<readonly Opened[]> | undefined;
  const two = async (): Promise<OpenStore> => {
    opened ??= Promise.all([open(), open()]);
    const [first, second] = await opened;
    return { store: first.store, another: async () => second.store, close: async () => undefined };
  };
  const close = async (): Promise<void> => {
    for (const one of (await opened) ?? []) await one.close();
  };
  return [two, close];
}

let names = 0;
const run = Math.trunc(Math.random() * 2 ** 40).toString(36);

/** A name that no other test has. */
export function newName(): string {
  names += 1;
  return `redis test ${run} ${names}`;
}

/** A process that asks a store, with a name of its own. */
export function askerOf(store: Store): Asker {
  return new Asker(store, newName());
}

/** A key with so many starts in a minute, and no other limit. */
export function perMinute(count: number, limits: Partial<Rule> = {}): AskedKey {
  return keyOf({ rateCount: 1, ratePerUs: 60_000_000, burst: count, ...limits });
}
