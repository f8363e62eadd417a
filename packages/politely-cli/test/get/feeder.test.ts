import { expect, it } from "vitest";
import { Feeder } from "../../src/get/feeder.js";
import { sqliteQueue } from "../../src/get/queue/sqliteQueue.js";
import type { FinishedUrl } from "../../src/get/queue/urlQueue.js";
import { openSqlite } from "../../src/get/sqlite.js";

it("gives nothing back that has ended and is only not written down yet", async () => {
  const database = openSqlite(":memory:");
  const options = { name: "list", worker: "w", leaseMs: 60_000 };
  const queue = sqliteQueue(database, options);
  await queue.add(["1", "2", "3"].map((name) => ({ url: `https://a/${name}`, key: "a" })));
  await queue.begin({ again: false });
  const unwritten: FinishedUrl[] = [];
  const begun: string[] = [];
  const feeder = new Feeder({
    queue,
    isShared: true,
    concurrency: 8,
    begin(url, lane) {
      begun.push(url);
      unwritten.push({ url, key: "a", outcome: "fetched" });
      setImmediate(() => {
        feeder.started(lane, 0);
        feeder.ended(lane);
      });
    },
    taken: (urls) => urls,
    settled: () => queue.finish(unwritten.splice(0)),
    failed: (error) => expect.unreachable(String(error)),
  });
  await feeder.run();
  expect(begun).toEqual(["https://a/1", "https://a/2", "https://a/3"]);
  expect(await queue.counts()).toMatchObject({ total: 3, waiting: 0, fetched: 3 });
  database.close();
});
