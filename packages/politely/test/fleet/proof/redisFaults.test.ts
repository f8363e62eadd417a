import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { startRedis } from "../../servers/redis.js";
import { askRedis } from "../../servers/redisProcess.js";
import { startRedisSentinel } from "../../servers/redisSentinel.js";
import { joinStarts } from "../joinStarts.js";
import { allStart, comes, comesWithinMs, type Ground, groundOf, startWorkers } from "./ground.js";
import { type Book, policyOf, violationsOf } from "./numbers.js";
import { redisClusterPlace, redisPlace } from "./places.js";
import { restartProof } from "./restartProof.js";
import { stormProof } from "./stormProof.js";

const host = "redis.test";
const book: Book = {
  permitTtlMs: 2_000,
  hosts: { [host]: { rate: { count: 50, perMs: 1_000, burst: 2 }, windows: [{ count: 20, perMs: 300 }] } },
};
const input = (name: string, outage: string): Record<string, unknown> => ({
  policy: policyOf(book),
  options: { name, outage },
  loads: [{ host, callers: 2 }],
});

describe.concurrent("processes with a Redis that", () => {
  const ground = groundOf(() => redisPlace());

  it("forgets its scripts go on as if nothing had happened", async () => {
    await using fleet = await startWorkers(ground(), [{ id: "a" }, { id: "b" }], input("scripts", "closed"));
    fleet.go();
    for (let count = 1; count <= 5; count++) {
      await comes(fleet, "start", undefined, 20 * count);
      await askRedis(ground().place.port, "SCRIPT", "FLUSH");
    }
    await comes(fleet, "start", undefined, 140);
    const entries = await fleet.finish(comesWithinMs);
    expect(violationsOf(joinStarts(entries), book), "a limit was broken").toEqual([]);
    expect(entries.filter(({ type }) => type === "refused" || type === "event outage")).toEqual([]);
  });

  it.each([
    ["can only be read", /takes no writes/, ["--replicaof", "127.0.0.1", "1"]],
    ["has no memory left", /memory/i, ["--maxmemory", "1kb", "--maxmemory-policy", "noeviction"]],
  ] as const)("%s are told so, or keep to their share", async (name, says, args) => {
    await using server = await startRedis({ args });
    const { library } = ground();
    const full: Ground = { kind: "redis", address: { url: server.url }, library };
    const members = ["closed", "share"].map((outage) => ({ id: outage, input: input(name, outage) }));
    await using fleet = await startWorkers(full, members, {});
    fleet.go();
    const [refused] = await comes(fleet, "refused", "closed");
    expect(refused).toMatchObject({ code: "POLITELY_STORE", message: expect.stringMatching(says) });
    // Nobody ever told how many there are: a tenth.
    const shared = await comes(fleet, "start", "share", 4);
    expect(shared.filter(({ isStore }) => isStore)).toEqual([]);
    expect(shared[3].machineUs - shared[2].machineUs).toBeGreaterThanOrEqual(190_000);
    await fleet.finish(comesWithinMs);
  });
});

describe.concurrent("processes whose Redis restarts", () => {
  restartProof(groundOf(() => redisPlace(["--appendonly", "yes"])));
});

describe.concurrent("processes with Redis Sentinel", () => {
  const ground = groundOf(async () => {
    const system = await startRedisSentinel();
    const { sentinels, name } = system;
    return { kind: "redis-sentinel", address: { sentinels, name }, system, close: () => system.stop() };
  });

  it("go on after a failover, and exceed a limit by no more than the replica had not heard of", async () => {
    const members = ["a", "b", "c"].map((id) => ({ id }));
    await using fleet = await startWorkers(ground(), members, input("sentinel", "closed"));
    fleet.go();
    for (const { id } of members) await comes(fleet, "start", id, 20);
    await ground().place.system.failover();
    await allStart(fleet, ["a", "b", "c"]);
    await delay(500);
    const entries = await fleet.finish(comesWithinMs);
    const extra = violationsOf(joinStarts(entries), book).filter(({ kind }) => kind !== "token");
    const most = Math.max(0, ...extra.map((violation) => violation.extra));
    console.info(`Redis Sentinel: ${most} extra starts after a failover`);
    // Replication is asynchronous. A process has one question on its way, and each grants two starts at most: its burst.
    expect(most).toBeLessThanOrEqual(2 * members.length);
  });
});

describe.concurrent("processes that share a Redis Cluster", () => {
  stormProof(groundOf(redisClusterPlace));
});
