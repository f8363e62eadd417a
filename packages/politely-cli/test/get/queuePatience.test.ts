import { getEventListeners } from "node:events";
import { expect, it } from "vitest";
import { patientQueue } from "../../src/get/queue/patientQueue.js";
import { sqliteQueue } from "../../src/get/queue/sqliteQueue.js";
import type { UrlQueue } from "../../src/get/queue/urlQueue.js";
import { openSqlite } from "../../src/get/sqlite.js";

const url = { url: "https://a/1", key: "a" };

/** A queue whose store is connected and says nothing for the first `silences` questions. */
function silentQueue(silences: number): { queue: UrlQueue; asked: () => number; close: () => void } {
  const database = openSqlite(":memory:");
  const queue = sqliteQueue(database, { name: "list", worker: "w", leaseMs: 60_000 });
  let asked = 0;
  const answer = <Answer>(work: () => Promise<Answer>): Promise<Answer> => {
    asked += 1;
    return asked <= silences ? new Promise<Answer>(() => undefined) : work();
  };
  const silent: UrlQueue = {
    add: (urls) => answer(() => queue.add(urls)),
    begin: (options) => answer(() => queue.begin(options)),
    keys: (after, count) => answer(() => queue.keys(after, count)),
    claim: (key, count) => answer(() => queue.claim(key, count)),
    finish: (urls) => answer(() => queue.finish(urls)),
    renew: (options) => answer(() => queue.renew(options)),
    counts: () => answer(() => queue.counts()),
    countsByKey: (count) => answer(() => queue.countsByKey(count)),
    close: () => answer(() => queue.close()),
  };
  return { queue: silent, asked: () => asked, close: () => database.close() };
}

it("asks a store again that is connected and has not answered in time", async () => {
  const { queue, asked, close } = silentQueue(2);
  const lines: string[] = [];
  const patient = patientQueue(queue, { giveUpMs: 10_000, tryMs: 30, log: (line) => lines.push(line) });
  await patient.add([url]);
  expect(await patient.counts()).toMatchObject({ total: 1 });
  expect(asked()).toBe(4);
  expect(lines[0]).toMatch(/^the shared list cannot be reached, trying again: .*no answer within 30 ms/);
  close();
});

it("gives up on a silent store after the time it was given, whatever it is asked", async () => {
  const { queue, close } = silentQueue(Number.POSITIVE_INFINITY);
  const patient = patientQueue(queue, { giveUpMs: 300, tryMs: 100, log: () => undefined });
  const fromMs = performance.now();
  const ends = await Promise.allSettled([patient.finish([]), patient.counts(), patient.renew(), patient.close()]);
  expect(ends.map(({ status }) => status)).toEqual(["rejected", "rejected", "rejected", "rejected"]);
  expect(performance.now() - fromMs).toBeLessThan(3_000);
  close();
});

it("is not held by a silent store once it is stopped", async () => {
  const { queue, close } = silentQueue(Number.POSITIVE_INFINITY);
  const stop = new AbortController();
  const patient = patientQueue(queue, { giveUpMs: 60_000, log: () => undefined, stopped: stop.signal });
  const asking = Promise.allSettled([patient.begin({ again: false }), patient.claim("a", 1), patient.finish([])]);
  setTimeout(() => stop.abort(), 50);
  const fromMs = performance.now();
  expect((await asking).map(({ status }) => status)).toEqual(["rejected", "rejected", "rejected"]);
  await expect(patient.close()).rejects.toThrow(/no answer/);
  // Two seconds of grace for all of it together.
  expect(performance.now() - fromMs).toBeLessThan(4_000);
  close();
});

it("still tells a store that answers what has ended, after it is stopped", async () => {
  const { queue, close } = silentQueue(0);
  const stop = new AbortController();
  const patient = patientQueue(queue, { giveUpMs: 60_000, log: () => undefined, stopped: stop.signal });
  await patient.add([url]);
  stop.abort();
  await patient.finish([{ ...url, outcome: "fetched" }]);
  expect(await patient.counts()).toMatchObject({ total: 1, fetched: 1 });
  await patient.close();
  close();
});

it("leaves no listener behind, however much is asked", async () => {
  const { queue, close } = silentQueue(0);
  const stop = new AbortController();
  const listening = (): number => getEventListeners(stop.signal, "abort").length;
  const patient = patientQueue(queue, { giveUpMs: 60_000, log: () => undefined, stopped: stop.signal });
  const before = listening();
  for (let times = 0; times < 100; times++) await patient.counts();
  expect(listening()).toBe(before);
  close();
  const silent = silentQueue(Number.POSITIVE_INFINITY);
  const waiting = patientQueue(silent.queue, { giveUpMs: 20, tryMs: 10, log: () => undefined, stopped: stop.signal });
  const alone = listening();
  await expect(waiting.counts()).rejects.toThrow(/no answer/);
  expect(listening()).toBe(alone);
  silent.close();
});

it("adds one listener to the signal, however many wait", async () => {
  const { queue, close } = silentQueue(50);
  const stopped = new AbortController();
  const patient = patientQueue(queue, { giveUpMs: 60_000, stopped: stopped.signal, log: () => undefined });
  const asking = Array.from({ length: 50 }, () => patient.add([url]));
  expect(getEventListeners(stopped.signal, "abort")).toHaveLength(1);
  stopped.abort();
  expect((await Promise.allSettled(asking)).every(({ status }) => status === "rejected")).toBe(true);
  close();
});
