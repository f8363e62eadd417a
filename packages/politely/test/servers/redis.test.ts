import { mkdtemp, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Redis } from "ioredis";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { isAlive } from "../fleet/isAlive.js";
import { startRedis } from "./redis.js";
import { askRedis, type RedisServer } from "./redisProcess.js";

// These are about servers of our own; the last ones say what REDIS_URL does.
beforeEach(() => vi.stubEnv("REDIS_URL", undefined));
afterEach(() => vi.unstubAllEnvs());

async function folderOf({ port }: RedisServer): Promise<string> {
  const [, folder] = (await askRedis(port, "CONFIG", "GET", "dir")) as string[];
  return folder;
}

describe("a Redis server", () => {
  it("answers at its URL, keeps nothing on disk, and stops with a connection still open", async () => {
    const server = await startRedis();
    const client = new Redis(server.url, { retryStrategy: () => null });
    expect(await client.ping()).toBe("PONG");
    expect(await client.config("GET", "save")).toEqual(["save", ""]);
    expect(String(await client.info("server"))).toContain(`process_id:${server.pid}\r\n`);

    const closed = new Promise((resolve) => client.once("end", resolve));
    await server.stop();
    await closed;
    expect(isAlive(server.pid)).toBe(false);
    await expect(askRedis(server.port, "PING")).rejects.toThrow();
    await server.stop();
    await expect(server.restart()).rejects.toThrow("was stopped");
  });

  it("removes its folder when it stops", async () => {
    const server = await startRedis();
    const folder = await folderOf(server);
    expect(folder).toContain("politely-redis-");
    await server.stop();
    await expect(rm(folder)).rejects.toThrow("ENOENT");
  });

  it("forgets everything when it restarts, and is another process on the same port", async () => {
    await using server = await startRedis();
    const { pid } = server;
    await askRedis(server.port, "SET", "key", "value");
    await server.restart();
    expect(server.pid).not.toBe(pid);
    expect(isAlive(pid)).toBe(false);
    expect(await askRedis(server.port, "GET", "key")).toBeNull();
  });

  it("comes back with its data after SIGKILL where the arguments ask for a log", async () => {
    await using server = await startRedis({ args: ["--appendonly", "yes", "--appendfsync", "always"] });
    await askRedis(server.port, "SET", "key", "value");
    await server.kill9();
    expect(isAlive(server.pid)).toBe(false);
    await server.restart();
    expect(await askRedis(server.port, "GET", "key")).toBe("value");
  });

  it("runs beside another of its kind", async () => {
    await using one = await startRedis();
    await using two = await startRedis();
    await askRedis(one.port, "SET", "key", "one");
    expect(await askRedis(two.port, "GET", "key")).toBeNull();
  });

  it("that does not start says why", async () => {
    await expect(startRedis({ args: ["--maxmemory", "plenty"] })).rejects.toThrow(/did not get ready.*maxmemory/s);
  });

  it("that is not installed is named in one line, with what to install", async () => {
    const folder = await mkdtemp(join(tmpdir(), "politely-path-"));
    await symlink("/usr/bin/setpriv", join(folder, "setpriv"));
    vi.stubEnv("PATH", folder);
    const line = /^redis-server is not installed\. .*apt-get install redis-server.*$/;
    await expect(startRedis()).rejects.toThrow(line);
    await rm(join(folder, "setpriv"));
    await expect(startRedis()).rejects.toThrow(line);
    await rm(folder, { recursive: true });
  });
});

describe("the server that REDIS_URL names", () => {
  it("is taken as it is, and neither stopped nor restarted", async () => {
    await using own = await startRedis();
    vi.stubEnv("REDIS_URL", own.url);
    const server = await startRedis();
    expect(server).toMatchObject({ url: own.url, port: own.port, pid: 0 });
    await server.stop();
    expect(await askRedis(server.port, "PING")).toBe("PONG");
    await expect(server.restart()).rejects.toThrow("unset REDIS_URL");
    await expect(server.kill9()).rejects.toThrow("unset REDIS_URL");
  });

  it("is left alone by a test that needs arguments", async () => {
    vi.stubEnv("REDIS_URL", "redis://127.0.0.1:1");
    await using server = await startRedis({ args: ["--maxmemory", "2mb"] });
    expect(await askRedis(server.port, "CONFIG", "GET", "maxmemory")).toEqual(["maxmemory", "2097152"]);
  });

  it("must be a URL", async () => {
    vi.stubEnv("REDIS_URL", "localhost");
    await expect(startRedis()).rejects.toThrow('got "localhost"');
  });
});
