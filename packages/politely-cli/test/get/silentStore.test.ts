import { setTimeout as delay } from "node:timers/promises";
import { expect, it } from "vitest";
import { startRedisProcess } from "../../../politely/test/servers/redisProcess.js";
import { WorkError } from "../../src/errors.js";
import { Keys } from "../../src/get/keys.js";
import { sqliteQueue } from "../../src/get/queue/sqliteQueue.js";
import type { UrlQueue } from "../../src/get/queue/urlQueue.js";
import { addAll } from "../../src/get/restore.js";
import { openSqlite } from "../../src/get/sqlite.js";
import { StagedList } from "../../src/get/stagedList.js";
import { startGet } from "./child.js";
import { Place } from "./place.js";
import { pages, startSite } from "./site.js";

it("ends in order on the second Ctrl-C while Redis is connected and silent, and goes on later", async () => {
  await using server = await startRedisProcess({ args: ["--appendonly", "yes"] });
  using place = new Place();
  await using site = await startSite({ delayMs: 10 });
  place.file("list.txt", pages(site, 80).join("\n"));
  place.file("politely.json", JSON.stringify({ hosts: { "127.0.0.1": { rate: "40/s", burst: 5 } } }));
  const args = ["list.txt", "-o", "out", "--share", server.url, "--lease", "2s", "--no-robots"];
  const { child, ended } = startGet(place.path, args);
  await site.until(20);
  process.kill(server.pid, "SIGSTOP");
  try {
    await delay(200);
    child.kill("SIGINT");
    await delay(200);
    child.kill("SIGINT");
    const stoppedMs = performance.now();
    // 130 would be the end that comes five seconds later, whatever is left.
    const { code, stderr } = await ended;
    expect({ code, stderr }).toMatchObject({ code: 1 });
    expect(stderr).toMatch(/left; run the same command again/);
    expect(performance.now() - stoppedMs).toBeLessThan(4_900);
  } finally {
    process.kill(server.pid, "SIGCONT");
  }
  const finished = new Set(place.index().map(({ url }) => new URL(url).pathname));
  const before = site.seen.length;
  expect(await startGet(place.path, args).ended).toMatchObject({ code: 0, stderr: "" });
  expect(site.seen.slice(before).filter(({ path }) => finished.has(path))).toEqual([]);
  expect(site.counts().size).toBe(80);
});

it("stops putting a long list into the store on the first Ctrl-C", async () => {
  async function* listed() {
    for (let line = 1; line <= 5_000; line++) yield { url: `https://a.org/${line}`, source: "argument", line };
  }
  const database = openSqlite(":memory:");
  const queue = sqliteQueue(database, { name: "list", worker: "w", leaseMs: 60_000 });
  const interrupted = new AbortController();
  let batches = 0;
  const add: UrlQueue["add"] = async (urls) => {
    batches += 1;
    if (batches === 2) interrupted.abort();
    await queue.add(urls);
  };
  const list = await StagedList.read(listed());
  const slow = Object.create(queue, { add: { value: add } }) as UrlQueue;
  const adding = addAll(slow, { list, keys: new Keys({}), interrupted: interrupted.signal });
  await expect(adding).rejects.toThrow(WorkError);
  expect(await queue.counts()).toMatchObject({ total: 2_000 });
  database.close();
});
