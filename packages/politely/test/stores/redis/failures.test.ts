import { readFile } from "node:fs/promises";
import { Redis } from "ioredis";
import { createClient } from "redis";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { StoreError } from "../../../src/errors.js";
import { redisStore } from "../../../src/stores/redis.js";
import type { Store } from "../../../src/stores/store.js";
import { faultyProxy } from "../../servers/faultyProxy.js";
import { startRedis } from "../../servers/redis.js";
import { askRedis, type RedisServer } from "../../servers/redisProcess.js";
import { askerOf, CLIENTS, newName, perMinute, quiet } from "./open.js";

let server: RedisServer;
let client: Redis;
beforeAll(async () => {
  server = await startRedis({ args: [] });
  client = quiet(new Redis(server.url));
});
afterAll(async () => {
  client.disconnect();
  await server.stop();
});

/** The error of a take, which must be a `StoreError` with a cause. */
async function failureOf(store: Store, ...keys: string[]): Promise<StoreError> {
  const wanted = Object.fromEntries(keys.map((key) => [key, perMinute(5)]));
  const error: unknown = await askerOf(store)
    .take(wanted)
    .then(
      () => undefined,
      (reason: unknown) => reason,
    );
  expect(error).toBeInstanceOf(StoreError);
  const failure = error as StoreError;
  expect(failure.cause).toBeInstanceOf(Error);
  return failure;
}

async function starts(store: Store, key: string): Promise<number> {
  return (await store.transact([key], { kind: "look", keys: [perMinute(5)] })).keys[0].starts;
}

describe("a value that is not ours", () => {
  const foreign: Readonly<Record<string, (name: string) => Promise<unknown>>> = {
    "a list": (name) => client.rpush(name, "x"),
    "a hash": (name) => client.hset(name, "a", "b"),
    "a stream": (name) => client.xadd(name, "*", "a", "b"),
    "an empty string": (name) => client.set(name, ""),
    "some text": (name) => client.set(name, "hello"),
    "text that begins like ours": (name) => client.set(name, "PL"),
    "half of one of ours": (name) => client.set(name, "PL\u0002k\u0081"),
    "a number where ours has more": (name) => client.set(name, "PL\u0002k\u0001"),
    "a form of ours that nobody knows": (name) => client.set(name, "PL\u0002z"),
    "an empty table": (name) => client.set(name, Buffer.from([80, 76, 2, 107, 0x80])),
  };

  for (const [what, set] of Object.entries(foreign)) {
    it(`is named and left alone, as are all other keys: ${what}`, async () => {
      const prefix = `{${newName()}}:`;
      const store = redisStore(client, { prefix });
      await set(`${prefix}k:theirs`);
      const before = await client.dump(`${prefix}k:theirs`);
      for (const keys of [["theirs"], ["ours", "theirs"]]) {
        const error = await failureOf(store, ...keys);
        expect(error.message).toContain(
          `The value of the Redis key "${prefix}k:theirs" is not one of politely's. Give`,
        );
        expect(error.isLasting).toBe(true);
      }
      const lease = { kind: "lease", act: "take", holder: "h", label: "l", ttlUs: 1, epochUs: 1 } as const;
      await expect(store.transact(["theirs"], lease)).rejects.toThrow("is not one of politely's");
      expect(await client.dump(`${prefix}k:theirs`)).toBe(before);
      expect(await client.keys(`${prefix}*`)).toEqual([`${prefix}k:theirs`]);
    });
  }

  it("is told from one of another version, which is left alone as well", async () => {
    const prefix = `{${newName()}}:`;
    const store = redisStore(client, { prefix });
    await client.set(`${prefix}k:newer`, "PL\u0007ksomething");
    const error = await failureOf(store, "ours", "newer");
    expect(error.message).toBe(
      `The value of the Redis key "${prefix}k:newer" has version 7, and this version of politely reads 2 only. Use one version, or another prefix, or remove that key.`,
    );
    expect(error.isLasting).toBe(true);
    expect(await client.keys(`${prefix}*`)).toEqual([`${prefix}k:newer`]);
  });

  it("may be a lease where a limit was expected, or a limit where a lease was", async () => {
    const store = redisStore(client, { prefix: `{${newName()}}:` });
    const asker = askerOf(store);
    await asker.lease("run", "take");
    expect((await failureOf(store, "run")).message).toContain("not one of politely's");
    await asker.take({ host: perMinute(1) });
    await expect(asker.lease("host", "take")).rejects.toThrow("not one of politely's");
    // Also where both are asked for at once.
    const both = [asker.take({ both: perMinute(1) }), asker.lease("both", "take")];
    const [taken, leased] = await Promise.allSettled<object>(both);
    expect([taken.status, leased.status]).toEqual(["fulfilled", "rejected"]);
    expect(await starts(store, "both")).toBe(1);
  });
});

describe("a server", () => {
  it("that is full grants nothing, and counts nothing; with room again it goes on", async () => {
    await using full = await startRedis({ args: ["--maxmemory-policy", "noeviction"] });
    const own = quiet(new Redis(full.url));
    const store = redisStore(own);
    await askerOf(store).start({ known: perMinute(5) });
    await own.config("SET", "maxmemory", "1");
    for (const key of ["known", "new"]) {
      const error = await failureOf(store, key);
      expect(error.message).toContain("Redis has reached its maxmemory, and nothing was granted. Give it more memory");
      expect(error.isLasting).toBe(false);
    }
    expect([await starts(store, "known"), await starts(store, "new")]).toEqual([1, 0]);
    await own.config("SET", "maxmemory", "0");
    await askerOf(store).start({ known: perMinute(5) });
    expect(await starts(store, "known")).toBe(2);
    own.disconnect();
  });

  it("that is a replica can be looked at, and grants nothing", async () => {
    await using replica = await startRedis({ args: ["--repl-diskless-sync-delay", "0"] });
    await askRedis(replica.port, "REPLICAOF", server.host, String(server.port));
    const own = quiet(new Redis(replica.url));
    const store = redisStore(own);
    const error = await failureOf(store, newName());
    expect(error.message).toMatch(/replica.*nothing was granted\. Connect to the master/);
    expect(error.isLasting).toBe(false);
    expect(await starts(store, newName())).toBe(0);
    own.disconnect();
  });

  it("that is busy with somebody's script says so, and goes on afterwards", async () => {
    await using busy = await startRedis({ args: ["--busy-reply-threshold", "10"] });
    const [own, other] = [quiet(new Redis(busy.url)), quiet(new Redis(busy.url))];
    const store = redisStore(own);
    await askerOf(store).start({ host: perMinute(5) });
    const endless = other.eval("while true do end", 0).catch(() => undefined);
    let error = await failureOf(store, "host").catch(() => undefined);
    while (error === undefined) error = await failureOf(store, "host").catch(() => undefined);
    expect(error.message).toContain("busy with somebody's long script");
    await own.script("KILL");
    await endless;
    await askerOf(store).start({ host: perMinute(5) });
    own.disconnect();
    other.disconnect();
  });

  it("with another password is not asked for ever", async () => {
    await using guarded = await startRedis({ args: ["--requirepass", "right"] });
    for (const password of ["wrong", ""]) {
      const own = quiet(new Redis({ port: guarded.port, ...(password === "" ? {} : { password }) }));
      const error = await failureOf(redisStore(own), "host");
      expect(error.message).toBe("Redis does not know this user or password. Give the client the right ones.");
      expect(error.isLasting).toBe(true);
      own.disconnect();
    }
    const other = quiet(createClient({ url: guarded.url }));
    // It tries again and again, and never says that it has connected.
    other.connect().catch(() => undefined);
    expect((await failureOf(redisStore(other), "host")).message).toContain("this user or password");
    other.destroy();
  });

  it("whose user may not run scripts or not write says what to allow", async () => {
    const name = newName().replaceAll(" ", "-");
    const users = { reader: "+@read +evalsha +eval", scriptless: "+@all -@scripting", elsewhere: "+@all" };
    for (const [user, rights] of Object.entries(users)) {
      const keys = user === "elsewhere" ? "~else*" : "~*";
      await client.call("ACL", "SETUSER", `${name}-${user}`, "on", ">secret", keys, ...rights.split(" "));
      const own = quiet(
        new Redis({ port: server.port, username: `${name}-${user}`, password: "secret", enableReadyCheck: false }),
      );
      const error = await failureOf(redisStore(own), "host");
      expect(error.message).toContain("Allow it the commands that docs/store-redis.md names");
      expect(error.isLasting).toBe(true);
      own.disconnect();
    }
  });

  it("needs no more rights than the page about Redis names", async () => {
    const page = await readFile(new URL("../../../../../docs/store-redis.md", import.meta.url), "utf8");
    const rights = /`(~\{politely\}:\* [^`]+)`/.exec(page)?.[1].split(" ") ?? [];
    const name = newName().replaceAll(" ", "-");
    await client.call("ACL", "SETUSER", name, "on", ">secret", ...rights, "+info", "+client");
    const own = new Redis({ port: server.port, username: name, password: "secret" });
    const store = redisStore(own);
    const windows = [{ count: 50, perUs: 1_000_000, grainUs: 1 }];
    const key = perMinute(5, { windows, concurrency: 1, permitTtlUs: 1_000_000 });
    const [holder, waiter] = [askerOf(store), askerOf(store)];
    const stop = store.listen?.(waiter.process, () => undefined);
    const taken = await holder.start({ host: key });
    for (const rate of [2, 1]) {
      await waiter.take({ host: { ...key, cost: { rate, window: 1, quota: 1 } } }, { doesWait: true });
    }
    const { process } = holder;
    const told = { completeBefore: 0, gone: [], isLeaving: false };
    await store.transact(["host"], { kind: "renew", process, rules: [key.rule], places: [[]], ...told });
    expect((await holder.settle(taken)).wake).toHaveLength(1);
    const record = { kind: "record", agesUs: [5, 4], counts: [1, 2], meant: 0, random: 0, reset: "all" } as const;
    await store.transact(["host"], { ...record, ...holder.next(), keys: [key] });
    await store.transact(["host"], {
      kind: "renew",
      process,
      rules: [key.rule],
      places: [[]],
      ...told,
      isLeaving: true,
    });
    await holder.lease("run", "take");
    expect(await starts(store, "host")).toBe(4);
    stop?.();
    own.disconnect();
  });

  it.each(["EVALSHA", "EVAL", "TIME", "GET", "SET", "ZADD"])(
    "that has renamed %s says which commands it must have",
    async (command) => {
      await using renamed = await startRedis({ args: ["--rename-command", command, "hidden"] });
      const own = quiet(new Redis(renamed.url));
      const error = await failureOf(redisStore(own), "host");
      expect(error.message).toMatch(/^This server .*it must have the commands that docs\/store-redis.md names/);
      expect(error.isLasting).toBe(true);
      own.disconnect();
    },
  );

  it.each([
    ["-READONLY You can't write against a read only replica.", "Redis is a replica here", false],
    ["-OOM command not allowed when used memory > 'maxmemory'.", "Redis has reached its maxmemory", false],
    ["-NOREPLICAS Not enough good replicas to write.", "too few replicas follow it", false],
    ["Unknown Redis command called from Lua script", "must have the commands that", true],
    ["The user executing the script can't run this command or subcommand", "The Redis user may not do this", true],
  ])("of version 6, which puts the script before the reason, is understood: %s", async (reason, words, isLasting) => {
    for (const line of ["@user_script:4: @user_script: 4", "@user_script: 4"]) {
      const said = new Error(`ERR Error running script (call to f_1028a5dba704e1d8): ${line}: ${reason}`);
      const fails = (): Promise<never> => Promise.reject(said);
      const error = await failureOf(redisStore({ evalsha: fails, eval: fails }), "host");
      expect(error.message).toContain(words);
      expect([error.isLasting, error.cause]).toEqual([isLasting, said]);
    }
  });
});

describe("a client", () => {
  it("that was closed, or never connected, is told apart from a server that is away", async () => {
    const closed = quiet(new Redis(server.url));
    await closed.ping();
    await closed.quit();
    const closedToo = quiet(createClient({ url: server.url }));
    await closedToo.connect();
    await closedToo.close();
    const never = createClient({ url: server.url });
    for (const own of [closed, closedToo, never]) {
      const error = await failureOf(redisStore(own), "host");
      expect(error.message).toMatch(
        /^The Redis client is not connected.*Connect it before the first use, and close it after/,
      );
      expect(error.isLasting).toBe(true);
    }
    const away = quiet(new Redis({ port: 1, maxRetriesPerRequest: 0, retryStrategy: () => 20 }));
    const error = await failureOf(redisStore(away), "host");
    expect(error.message).toMatch(/^Redis could not be asked about "host": .*Look at the server/);
    expect(error.isLasting).toBe(false);
    away.disconnect();
  });

  it("whose methods throw, or whose replies somebody changes, rejects with an error like any other", async () => {
    const throwing = redisStore({
      evalsha: () => {
        throw new Error("no");
      },
      eval: () => Promise.reject(new Error("no")),
    });
    for (let round = 0; round < 2; round++) expect((await failureOf(throwing, "host")).message).toContain("no");
    for (const reply of [undefined, null, 5, {}, [], ["x"], [1, 2], "nothing", [Number.NaN]]) {
      const changed = redisStore({ evalsha: () => Promise.resolve(reply), eval: () => Promise.resolve(reply) });
      const lease = { kind: "lease", act: "take", holder: "h", label: "l", ttlUs: 1, epochUs: 1 } as const;
      await expect(changed.transact(["host"], lease)).rejects.toThrow(
        /^Redis answered something that the script never does/,
      );
    }
  });
});

for (const [name, open] of Object.entries(CLIENTS)) {
  describe(`with ${name} and a bad network`, () => {
    it("an operation whose reply is lost counts once when it is sent again", async () => {
      await using proxy = await faultyProxy(server);
      const { store, close } = await open(`redis://127.0.0.1:${proxy.port}`);
      const key = newName();
      const wanted = { [key]: perMinute(50) };
      const asker = askerOf(store);
      await asker.start(wanted);
      for (let round = 0; round < 5; round++) {
        const operation = {
          ...(await asker.take({ [newName()]: perMinute(1) })).operation,
          ...asker.next(),
          keys: Object.values(wanted),
        };
        proxy.swallowReplies(1);
        const replies = [];
        while (replies.length < 3) {
          const reply = await store.transact([key], operation).catch(() => undefined);
          if (reply !== undefined) replies.push(reply);
        }
        await proxy.heal();
        // It comes with the present time.
        const [first, ...others] = replies.map(({ grants, stop }) => ({ grants, stop }));
        expect(others).toEqual([first, first]);
      }
      expect(proxy.lostBytes).toBeGreaterThan(0);
      expect(await starts(store, key)).toBe(6);
      await close();
    });

    it("silence ends with an error in time, and what comes later is no trouble", async () => {
      await using proxy = await faultyProxy(server);
      const { store, close } = await open(`redis://127.0.0.1:${proxy.port}`, { timeoutMs: 200 });
      const key = newName();
      const asker = askerOf(store);
      await asker.start({ [key]: perMinute(50) });
      proxy.delay(600);
      const beganMs = performance.now();
      const error: unknown = await asker.take({ [key]: perMinute(50) }).catch((reason: unknown) => reason);
      expect(error).toBeInstanceOf(StoreError);
      expect(String(error)).toContain("Redis has not answered within 200 ms; what was asked may have happened or not.");
      expect(performance.now() - beganMs).toBeLessThan(500);
      proxy.delay(0);
      while ((await starts(store, key).catch(() => 0)) < 2);
      await close();
    });
  });
}
